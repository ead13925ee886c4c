// Package examples finds the examples that help and README show, for the tests that run them: an example that does not
// work is worse than none.
package examples

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// An Example is what a user may copy into a shell: one line, or some that belong together.
type Example struct {
	// Of is the command whose help has it, as its path, or the name of a file.
	Of    string
	Lines []string
}

// continued is the end of a line that goes on in the next one.
var continued = regexp.MustCompile(`\\\s*\n\s*`)

// InHelp returns the examples of root and all commands below it, in the order of help.
func InHelp(root *cobra.Command) []Example {
	var all []Example
	var e Example
	end := func() {
		if len(e.Lines) > 0 {
			all = append(all, e)
		}
	}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		e = Example{Of: cmd.CommandPath()}
		for _, line := range strings.Split(continued.ReplaceAllString(cmd.Example, ""), "\n") {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "#"):
			case line != "":
				e.Lines = append(e.Lines, line)
			default:
				end()
				e.Lines = nil
			}
		}
		end()
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
	return all
}

// InMarkdown returns the lines of the indented blocks of a text that call program, each as an example of its own.
func InMarkdown(file, text, program string) []Example {
	var all []Example
	for _, line := range strings.Split(continued.ReplaceAllString(text, ""), "\n") {
		code, ok := strings.CutPrefix(line, "    ")
		if ok && len(Calls(code, program)) > 0 {
			all = append(all, Example{Of: file, Lines: []string{strings.TrimSpace(code)}})
		}
	}
	return all
}

// Calls returns the arguments of each call of program in a line of shell. It knows as much of a shell as examples need:
// quotes, pipes, comments and <(...).
func Calls(line, program string) [][]string {
	var calls [][]string
	for _, words := range commands(line) {
		name := strings.Fields(program)
		for i := range words {
			if len(words) >= i+len(name) && strings.Join(words[i:i+len(name)], " ") == program {
				calls = append(calls, words[i+len(name):])
				break
			}
		}
	}
	return calls
}

// commands splits a line into commands, and those into words without their quotes.
func commands(line string) [][]string {
	var all [][]string
	var words []string
	var word strings.Builder
	var quote rune
	inWord := false
	endWord := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			all = append(all, words)
		}
		words = nil
	}
	runes := []rune(line)
	for i, r := range runes {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				word.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ':
			endWord()
		case r == '#' && !inWord:
			endCommand()
			return all
		case r == '|', r == ';', r == '(', r == ')':
			endCommand()
		case r == '<' && i+1 < len(runes) && runes[i+1] == '(':
			endWord()
		default:
			inWord = true
			word.WriteRune(r)
		}
	}
	endCommand()
	return all
}
