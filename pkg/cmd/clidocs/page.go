package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karmadactl/karmadactl/pkg/cmd/host"
)

// A page is what is told of one command, in no form yet.
type page struct {
	path    string // "karmadactl create secret"
	parent  string // its path, "" for the root
	short   string
	usage   string
	long    []block
	aliases []string
	example string
	options []option
	groups  []group
}

// A group is a heading and the commands below it.
type group struct {
	heading  string
	commands []link
}

type link struct{ path, short string }

type option struct{ name, text string }

// A block is a paragraph, an item of a list, or lines to be shown as they are.
type block struct {
	kind blockKind
	text string
}

type blockKind int

const (
	paragraph blockKind = iota
	item
	verbatim
)

// pagesOf returns a page for root and each command below it that help shows.
func pagesOf(root *cobra.Command) ([]page, error) {
	var pages []page
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		pages = append(pages, pageOf(cmd))
		for _, sub := range shown(cmd) {
			visit(sub)
		}
	}
	visit(root)

	groups, err := groupsOf(root)
	if err != nil {
		return nil, err
	}
	pages[0].groups = groups
	return pages, nil
}

func shown(cmd *cobra.Command) []*cobra.Command {
	var subs []*cobra.Command
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Deprecated == "" {
			subs = append(subs, sub)
		}
	}
	return subs
}

func pageOf(cmd *cobra.Command) page {
	p := page{
		path:    cmd.CommandPath(),
		short:   cmd.Short,
		long:    blocks(cmd.Long),
		aliases: cmd.Aliases,
		example: undent(cmd.Example),
	}
	if len(p.long) == 0 {
		p.long = blocks(cmd.Short)
	}
	flags := cmd.NonInheritedFlags()
	if cmd.HasParent() {
		p.parent = cmd.Parent().CommandPath()
	} else {
		flags = pflag.NewFlagSet("", pflag.ContinueOnError) // those of all commands are the page of "options"
	}
	if cmd.Name() == "options" {
		flags = cmd.InheritedFlags()
	}
	p.options = optionsOf(flags)
	p.usage = cmd.UseLine()
	if !cmd.HasParent() {
		p.usage = p.path + " COMMAND"
	}
	if cmd.HasParent() && len(p.options) > 0 && cmd.Name() != "options" {
		p.usage += " [options]"
	}
	if subs := shown(cmd); len(subs) > 0 {
		g := group{heading: "Commands"}
		for _, sub := range subs {
			g.commands = append(g.commands, link{sub.CommandPath(), sub.Short})
		}
		p.groups = []group{g}
	}
	return p
}

// groupsOf reads the groups of commands from the help of root, which alone knows them.
func groupsOf(root *cobra.Command) ([]group, error) {
	var help strings.Builder
	out := root.OutOrStdout()
	root.SetOut(&help)
	defer root.SetOut(out)
	if err := root.Help(); err != nil {
		return nil, fmt.Errorf("read the groups of commands from help: %w", err)
	}
	short := make(map[string]string)
	for _, cmd := range shown(root) {
		short[cmd.Name()] = cmd.Short
	}
	var groups []group
	for _, line := range strings.Split(help.String(), "\n") {
		if heading, ok := strings.CutSuffix(line, " Commands:"); ok {
			// There are two of "Other": one is enough here.
			if len(groups) == 0 || groups[len(groups)-1].heading != heading {
				groups = append(groups, group{heading: heading})
			}
			continue
		}
		fields := strings.Fields(line)
		if len(groups) == 0 || len(fields) == 0 || !strings.HasPrefix(line, "  ") || short[fields[0]] == "" {
			continue
		}
		g := &groups[len(groups)-1]
		g.commands = append(g.commands, link{root.CommandPath() + " " + fields[0], short[fields[0]]})
	}
	if last := len(groups) - 1; last >= 0 && short["options"] != "" {
		groups[last].commands = append(groups[last].commands, link{root.CommandPath() + " options", short["options"]})
	}
	return groups, nil
}

func optionsOf(fs *pflag.FlagSet) []option {
	var options []option
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" || f.Name == "help" {
			return
		}
		name := "--" + f.Name + "=" + defaultOf(f)
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		options = append(options, option{name: name, text: strings.Join(strings.Fields(f.Usage), " ")})
	})
	return options
}

// defaultOf returns the default of f as help shows it, but on no particular machine: what is below the data directory
// is where it is for root.
func defaultOf(f *pflag.Flag) string {
	value := f.DefValue
	if dir := host.DefaultDataDir(); dir != "" && strings.HasPrefix(value, dir) {
		value = "/var/lib/karmada" + strings.TrimPrefix(value, dir)
	}
	if f.Value.Type() == "string" {
		return "'" + value + "'"
	}
	return value
}

// blocks takes apart a text that kubectl's templates.LongDesc has made.
func blocks(long string) []block {
	var all []block
	open := false // whether the last block goes on in the next line
	for _, line := range strings.Split(long, "\n") {
		trimmed := strings.TrimSpace(line)
		code, isCode := strings.CutPrefix(line, "        ")
		entry, isItem := strings.CutPrefix(trimmed, "* ")
		switch {
		case trimmed == "":
			open = false
		case isCode:
			if last := len(all) - 1; open && all[last].kind == verbatim {
				all[last].text += "\n" + code
				continue
			}
			all, open = append(all, block{verbatim, code}), true
		case isItem:
			all, open = append(all, block{item, strings.TrimSpace(entry)}), true
		case open:
			all[len(all)-1].text += " " + trimmed
		default:
			all, open = append(all, block{paragraph, trimmed}), true
		}
	}
	return all
}

// undent takes the indentation off that help gives examples.
func undent(example string) string {
	lines := strings.Split(example, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(strings.TrimPrefix(line, "  "), " \t")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
