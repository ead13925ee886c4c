package main

import (
	"fmt"
	"strings"
)

const generated = "Made by tools/generate.sh from the commands themselves: change those."

// markdownFile is README.md for the root, so that the folder shows it.
func (p page) markdownFile() string { return fileOf(p.path, p.parent == "") }

func fileOf(path string, root bool) string {
	if root {
		return "README.md"
	}
	return strings.ReplaceAll(path, " ", "_") + ".md"
}

// markdown is the page for reading in a repository or on a site.
func markdown(p page) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- %s -->\n\n# %s\n\n", generated, p.path)
	for i, l := range p.long {
		switch l.kind {
		case paragraph:
			fmt.Fprintf(&b, "%s\n", prose(l.text))
		case item:
			fmt.Fprintf(&b, "* %s\n", prose(l.text))
		case verbatim:
			fmt.Fprintf(&b, "```\n%s\n```\n", l.text)
		}
		if next := i + 1; next == len(p.long) || l.kind != item || p.long[next].kind != item {
			b.WriteString("\n")
		}
	}
	fmt.Fprintf(&b, "## Usage\n\n```\n%s\n```\n\n", p.usage)
	if p.parent == "" {
		b.WriteString("As a plugin of kubectl it is called `kubectl karmada`, and takes the same commands.\n\n")
	}
	if len(p.aliases) > 0 {
		fmt.Fprintf(&b, "The command may also be called `%s`.\n\n", strings.Join(p.aliases, "`, `"))
	}
	for _, g := range p.groups {
		fmt.Fprintf(&b, "## %s\n\n", g.heading)
		for _, c := range g.commands {
			fmt.Fprintf(&b, "* [%s](%s): %s\n", c.path, fileOf(c.path, false), prose(c.short))
		}
		b.WriteString("\n")
	}
	if p.example != "" {
		fmt.Fprintf(&b, "## Examples\n\n```shell\n%s\n```\n\n", p.example)
	}
	if len(p.options) > 0 {
		b.WriteString("## Options\n\n")
		for _, o := range p.options {
			fmt.Fprintf(&b, "* `%s`: %s\n", o.name, prose(o.text))
		}
		b.WriteString("\n")
	}
	if p.parent != "" {
		fmt.Fprintf(&b, "## See also\n\n* [%s](%s)\n", p.parent, fileOf(p.parent, !strings.Contains(p.parent, " ")))
		if !strings.HasSuffix(p.path, " options") {
			root, _, _ := strings.Cut(p.path, " ")
			fmt.Fprintf(&b, "* [options of all commands](%s)\n", fileOf(root+" options", false))
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// prose makes Markdown show text as it is.
func prose(text string) string {
	return strings.NewReplacer(
		`\`, `\\`, "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "`", "\\`", "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;",
	).Replace(text)
}
