// The clidocs command writes the reference of karmadactl's commands, made from the commands themselves: docs/cli for
// reading, docs/man for man(1). tools/generate.sh runs it; the test beside it fails when a command says something else.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/cmd"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "clidocs: %v\n", err)
		os.Exit(1)
	}
}

// run writes both forms below the one folder that args name. Files of commands that are gone are removed.
func run(args []string) error {
	if len(args) != 1 {
		return errors.New("name the folder to write cli and man into")
	}
	files, err := generate()
	if err != nil {
		return err
	}
	for _, folder := range []string{"cli", "man"} {
		dir := filepath.Join(args[0], folder)
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove the former reference: %w", err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make a folder for the reference: %w", err)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(args[0], name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the reference: %w", err)
		}
	}
	return nil
}

// generate returns the text of every file by its path below docs.
func generate() (map[string]string, error) {
	root, _, err := cmd.New("karmadactl", genericiooptions.IOStreams{In: nil, Out: io.Discard, ErrOut: io.Discard})
	if err != nil {
		return nil, err
	}
	pages, err := pagesOf(root)
	if err != nil {
		return nil, err
	}
	files := make(map[string]string, 2*len(pages)+1)
	for _, p := range pages {
		files[filepath.Join("cli", p.markdownFile())] = markdown(p)
		files[filepath.Join("man", p.manFile())] = man(p)
	}
	return files, nil
}
