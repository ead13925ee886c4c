package tree

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/karmadactl/karmadactl/pkg/cmd/explanation"
)

// gap is what is left free between an object and how it is; minState is how much of
// that a column of its own is worth.
const gap, minState = 3, 24

// Draw writes a tree, a line for each object, with how it is beside it.
func Draw(w io.Writer, root *Node, s explanation.Style) error {
	var lines []line
	collect(&lines, root, "", "", "")
	widest := 0
	for _, l := range lines {
		if l.state != "" {
			widest = max(widest, utf8.RuneCountInString(l.text))
		}
	}
	if s.Width > 0 && widest+gap+minState > s.Width {
		widest = 0 // there is more room right behind each
	}
	var out strings.Builder
	for _, l := range lines {
		text := l.text
		if l.state != "" {
			text += strings.Repeat(" ", max(widest-utf8.RuneCountInString(l.text), 0)+gap)
		}
		before := utf8.RuneCountInString(text)
		shown := []rune(s.Clip(text + l.state))
		at := min(before, len(shown))
		if l.state == "" {
			at = 0 // a problem
		}
		state := string(shown[at:])
		if l.mark != nil {
			state = mark(s, *l.mark, state)
		}
		out.WriteString(strings.TrimRight(string(shown[:at])+state, " ") + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func mark(s explanation.Style, good bool, text string) string {
	if good {
		return s.Good(text)
	}
	return s.Bad(text)
}

// A line is one of the drawing.
type line struct {
	text, state string
	mark        *bool
}

// collect adds the lines of a node and what is below it. first begins its own line, and
// rest those below.
func collect(lines *[]line, n *Node, namespace, first, rest string) {
	*lines = append(*lines, line{text: first + n.label(namespace), state: n.State, mark: n.Ready})
	children, more, ready := drawn(n.Children)
	if n.Problem != "" {
		bad := false
		connector := "├─ "
		if len(children) == 0 {
			connector = "└─ "
		}
		*lines = append(*lines, line{text: rest + connector + n.Problem, mark: &bad})
	}
	for i, c := range children {
		branch, below := "├─ ", "│  "
		if i == len(children)-1 && more == 0 {
			branch, below = "└─ ", "   "
		}
		collect(lines, c, orOwn(n.Namespace, namespace), rest+branch, rest+below)
	}
	if more > 0 {
		*lines = append(*lines, line{text: fmt.Sprintf("%s└─ %d more, %d of them ready", rest, more, ready)})
	}
}

// orOwn returns the namespace that goes without saying below a node.
func orOwn(own, above string) string {
	if own == "" {
		return above
	}
	return own
}
