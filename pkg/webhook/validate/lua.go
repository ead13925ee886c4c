package validate

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"github.com/karmadactl/karmadactl/pkg/util/brief"
)

// What a script may be at most. The compiler looks for each name and literal among
// all those before it, and calls itself for what is inside something else; a stack
// that overflows ends the process. Within these limits it takes less than a second
// (spec: behaviour/08 8.3), and they are many times what anybody has written.
const (
	// longestScript is in bytes.
	longestScript = 64 << 10
	// mostConstants is the number of different names and literals.
	mostConstants = 1024
	// deepestScript is how many expressions and blocks are inside each other. Lua
	// itself stops at 200.
	deepestScript = 2000
)

// longestProblem is how much is said about a script, in bytes: some of it is in
// the message.
const longestProblem = 300

// compile says what keeps a script from being Lua, with its line.
func compile(script string) error {
	if len(script) > longestScript {
		return fmt.Errorf("must not be longer than %d bytes, it has %d", longestScript, len(script))
	}
	if err := compileAny(script); err != nil {
		return errors.New(brief.Text(err.Error(), longestProblem))
	}
	return nil
}

func compileAny(script string) (err error) {
	// The compiler panics for some of what it does not expect.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be compiled: %v", r)
		}
	}()
	chunk, err := parse.Parse(strings.NewReader(script), "")
	if syntax, ok := errors.AsType[*parse.Error](err); ok {
		return syntaxError(script, syntax)
	}
	if err != nil {
		return fmt.Errorf("cannot be parsed: %w", err)
	}
	s := survey{constants: map[string]bool{}}
	if err := s.look(reflect.ValueOf(chunk), deepestScript, 1); err != nil {
		return err
	}
	_, err = lua.Compile(chunk, "")
	if c, ok := errors.AsType[*lua.CompileError](err); ok {
		if c.Line == 0 || strings.Contains(c.Message, "line ") {
			return errors.New(c.Message) // it is about the script as a whole, or knows the line better
		}
		return fmt.Errorf("line %d: %s", c.Line, c.Message)
	}
	if err != nil {
		return fmt.Errorf("cannot be compiled: %w", err)
	}
	return nil
}

// syntaxError tells where the parser stopped, in one line.
func syntaxError(script string, e *parse.Error) error {
	if e.Pos.Line == parse.EOF {
		return fmt.Errorf("line %d: %s: the script ends too early", strings.Count(strings.TrimRight(script, "\n"), "\n")+1, e.Message)
	}
	return fmt.Errorf("line %d, near %q: %s", e.Pos.Line, brief.Text(e.Token, 40), e.Message)
}

// A survey is what is counted in a syntax tree before it is compiled.
type survey struct{ constants map[string]bool }

// look counts, and stops with an error at what is too much. It looks at no more
// levels than that.
func (s *survey) look(v reflect.Value, levels, line int) error {
	switch v.Kind() {
	case reflect.String:
		if s.constants[v.String()] = true; len(s.constants) > mostConstants {
			return fmt.Errorf("line %d: there are more than %d different names and literals", line, mostConstants)
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := s.look(v.Index(i), levels, line); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := s.look(v.Field(i), levels, line); err != nil {
				return err
			}
		}
	case reflect.Interface:
		return s.look(v.Elem(), levels, line)
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		if node, ok := v.Interface().(ast.PositionHolder); ok && node.Line() > 0 {
			line = node.Line()
		}
		if levels == 0 {
			return fmt.Errorf("line %d: more than %d expressions or blocks are inside each other", line, deepestScript)
		}
		return s.look(v.Elem(), levels-1, line)
	}
	return nil
}
