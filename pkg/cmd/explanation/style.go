package explanation

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/printers"
)

// A Style is how text looks. The zero Style is that of files and pipes: lines are as
// long as they are, and without colour.
type Style struct {
	// Width is how many columns there are; 0 is no limit.
	Width int
	// Color says that colours may be used.
	Color bool
}

// minWidth is where breaking lines stops to help.
const minWidth = 40

// StyleOf returns the style of what is written to w: a terminal has a width, and
// colours unless NO_COLOR is set.
func StyleOf(w io.Writer) Style {
	s := Style{Color: printers.AllowsColorOutput(w)}
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			s.Width = max(columns, minWidth)
		}
	}
	return s
}

const (
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	reset  = "\x1b[0m"
)

func (s Style) paint(code, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return code + text + reset
}

// Good, Bad, Open and Bold mark text, where there are colours.
func (s Style) Good(text string) string { return s.paint(green, text) }
func (s Style) Bad(text string) string  { return s.paint(red, text) }
func (s Style) Open(text string) string { return s.paint(yellow, text) }
func (s Style) Bold(text string) string { return s.paint(bold, text) }

// wrap breaks text into lines, the first of which begins with first and the others with
// as many blanks. Line breaks in text are taken for blanks.
func (s Style) wrap(first, text string) string {
	indent := strings.Repeat(" ", utf8.RuneCountInString(first))
	room := s.Width - len(indent)
	words := strings.Fields(text)
	if s.Width == 0 || room < minWidth/2 {
		return first + strings.Join(words, " ") + "\n"
	}
	var b strings.Builder
	line, length := first, 0
	for _, word := range words {
		n := columns(word)
		switch {
		case length == 0:
		case length+1+n > room:
			b.WriteString(line + "\n")
			line, length = indent, 0
		default:
			line += " "
			length++
		}
		line += word
		length += n
	}
	b.WriteString(line + "\n")
	return b.String()
}

// columns counts the columns of text, without its colours.
func columns(text string) int {
	for _, code := range []string{bold, red, green, yellow, reset} {
		text = strings.ReplaceAll(text, code, "")
	}
	return utf8.RuneCountInString(text)
}

// Clip cuts a line to the width, so that no line of a drawing is broken.
func (s Style) Clip(line string) string {
	if s.Width == 0 || utf8.RuneCountInString(line) <= s.Width {
		return line
	}
	runes := []rune(line)
	return string(runes[:s.Width-1]) + "…"
}
