package main

import (
	"fmt"
	"strings"
)

func (p page) manFile() string { return manName(p.path) + ".1" }

func manName(path string) string { return strings.ReplaceAll(path, " ", "-") }

// man is the page for man(1). It carries no date: the same commands make the same page.
func man(p page) string {
	var b strings.Builder
	name := roff(manName(p.path))
	fmt.Fprintf(&b, ".\\\" %s\n", generated)
	fmt.Fprintf(&b, ".TH \"%s\" \"1\" \"\" \"karmadactl\" \"karmadactl\"\n", strings.ToUpper(name))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", name, roff(p.short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.nf\n%s\n.fi\n", roff(p.usage))
	b.WriteString(".SH DESCRIPTION\n")
	for _, l := range p.long {
		switch l.kind {
		case paragraph:
			fmt.Fprintf(&b, ".PP\n%s\n", roff(l.text))
		case item:
			fmt.Fprintf(&b, ".IP \\(bu 2\n%s\n", roff(l.text))
		case verbatim:
			fmt.Fprintf(&b, ".PP\n.RS\n.nf\n%s\n.fi\n.RE\n", roff(l.text))
		}
	}
	if len(p.aliases) > 0 {
		fmt.Fprintf(&b, ".PP\nThe command may also be called %s.\n", roff(strings.Join(p.aliases, ", ")))
	}
	for _, g := range p.groups {
		fmt.Fprintf(&b, ".SH \"%s\"\n", roff(strings.ToUpper(g.heading)))
		for _, c := range g.commands {
			fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", roff(manName(c.path)), roff(c.short))
		}
	}
	if len(p.options) > 0 {
		b.WriteString(".SH OPTIONS\n")
		for _, o := range p.options {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(o.name), roff(o.text))
		}
	}
	if p.example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(p.example))
	}
	if p.parent != "" {
		fmt.Fprintf(&b, ".SH \"SEE ALSO\"\n.BR %s (1)", roff(manName(p.parent)))
		if root, _, _ := strings.Cut(p.path, " "); p.path != root+" options" {
			fmt.Fprintf(&b, ",\n.BR %s (1)", roff(manName(root+" options")))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// roff makes a formatter show text as it is: no line of it is a request, and hyphens stay what a shell understands.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
