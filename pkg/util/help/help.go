// Package help prints help and usage of commands with many flags: grouped in
// named flag sets, and wrapped to the terminal's width.
package help

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	cliflag "k8s.io/component-base/cli/flag"
)

const (
	// defaultWidth is that of what is no terminal, so that help redirected to a
	// file is the same everywhere.
	defaultWidth = 80
	// minWidth is where wrapping stops to help.
	minWidth = 40
	// minUsage is how much room beside its name the usage of a flag needs; where
	// there is less it goes below.
	minUsage = 40
	// gap is what is left free between name and usage.
	gap = 3
	// below is how far usage that goes below the name is indented.
	below = 10
)

// Width returns the columns of the terminal that w is, or 80 when it is none.
func Width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return defaultWidth
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		return defaultWidth
	}
	return max(columns, minWidth)
}

// SetSections makes cmd print its flags grouped by sets, in their order, in
// help and usage. Its sub-commands print theirs in one group. A flag that is in
// no set, such as --help, is not printed.
func SetSections(cmd *cobra.Command, sets *cliflag.NamedFlagSets) {
	// Sub-commands inherit these functions: they are handed the command that
	// is asked for.
	groups := func(asked *cobra.Command) *cliflag.NamedFlagSets {
		if asked == cmd {
			return sets
		}
		return plainGroups(asked)
	}
	cmd.SetUsageFunc(func(asked *cobra.Command) error {
		w := asked.ErrOrStderr()
		_, err := io.WriteString(w, usage(asked, groups(asked), Width(w)))
		return err
	})
	cmd.SetHelpFunc(func(asked *cobra.Command, _ []string) {
		w := asked.OutOrStdout()
		width := Width(w)
		text := description(asked, width) + usage(asked, groups(asked), width)
		// cobra leaves no way to return this, and who reads help sees it end.
		_, _ = io.WriteString(w, text)
	})
}

// plainGroups are the flag sets of a command that has no named ones.
func plainGroups(cmd *cobra.Command) *cliflag.NamedFlagSets {
	return &cliflag.NamedFlagSets{
		Order:    []string{"", "global"},
		FlagSets: map[string]*pflag.FlagSet{"": cmd.LocalFlags(), "global": cmd.InheritedFlags()},
	}
}

func description(cmd *cobra.Command, width int) string {
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return Wrap(text, width) + "\n\n"
}

func usage(cmd *cobra.Command, sets *cliflag.NamedFlagSets, width int) string {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s [command]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	writeCommands(&b, cmd)
	for _, name := range sets.Order {
		writeFlags(&b, name, sets.FlagSets[name], width)
	}
	return b.String()
}

func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	b.WriteString("\nAvailable Commands:\n")
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			fmt.Fprintf(b, "  %-*s %s\n", cmd.NamePadding(), sub.Name(), sub.Short)
		}
	}
}

func writeFlags(b *strings.Builder, name string, fs *pflag.FlagSet, width int) {
	if !fs.HasAvailableFlags() {
		return
	}
	title := "Flags:"
	if name != "" {
		title = strings.ToUpper(name[:1]) + name[1:] + " flags:"
	}
	fmt.Fprintf(b, "\n%s\n\n", title)

	heads := 0
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			heads = max(heads, len(head(f)))
		}
	})
	beside := heads+gap+minUsage <= width
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		first, indent := head(f)+"\n", below
		if beside {
			first, indent = fmt.Sprintf("%-*s", heads+gap, head(f)), heads+gap
		}
		b.WriteString(first)
		for i, line := range usageLines(f, width-indent) {
			if i > 0 || !beside {
				b.WriteString(strings.Repeat(" ", indent))
			}
			b.WriteString(line + "\n")
		}
	})
}

// head returns the name of a flag and the type of its value.
func head(f *pflag.Flag) string {
	h := "      --" + f.Name
	if f.Shorthand != "" && f.ShorthandDeprecated == "" {
		h = "  -" + f.Shorthand + ", --" + f.Name
	}
	if typ, _ := pflag.UnquoteUsage(f); typ != "" {
		h += " " + typ
	}
	return h
}

// usageLines returns the usage of a flag and its default. Line breaks in a
// usage are kept: they make lists.
func usageLines(f *pflag.Flag, width int) []string {
	_, text := pflag.UnquoteUsage(f)
	switch {
	case isZero(f.DefValue):
	case f.Value.Type() == "string":
		text += fmt.Sprintf(" (default %q)", f.DefValue)
	default:
		text += fmt.Sprintf(" (default %s)", f.DefValue)
	}
	if f.Deprecated != "" {
		text += fmt.Sprintf(" (DEPRECATED: %s)", f.Deprecated)
	}
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.Split(Wrap(line, width), "\n")...)
	}
	return lines
}

// isZero says whether a default goes without saying.
func isZero(text string) bool {
	switch text {
	case "", "0", "0s", "false", "[]", "<nil>", ":0":
		return true
	default:
		return false
	}
}

// Wrap breaks paragraphs into lines of at most width columns; a longer word has
// a line of its own. Paragraphs are separated by blank lines; lines that begin
// with a blank are kept as they are.
func Wrap(text string, width int) string {
	var (
		out  []string
		line string
	)
	flush := func() {
		if line != "" {
			out = append(out, line)
			line = ""
		}
	}
	for source := range strings.SplitSeq(text, "\n") {
		if source == "" || source[0] == ' ' || source[0] == '\t' {
			flush()
			out = append(out, strings.TrimRight(source, " \t"))
			continue
		}
		for word := range strings.FieldsSeq(source) {
			switch {
			case line == "":
				line = word
			case len(line)+1+len(word) > width:
				flush()
				line = word
			default:
				line += " " + word
			}
		}
	}
	flush()
	return strings.Join(out, "\n")
}
