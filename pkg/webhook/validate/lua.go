package validate

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

const (
	// longestScript is the size of the largest script, in bytes. Compiling is
	// quadratic in the number of constants: this much takes a second at worst, the
	// longest time that the contract allows (spec: behaviour/08 8.3). It is many
	// times what anybody has written.
	longestScript = 256 << 10
	// deepestScript is how many expressions and blocks may be inside each other.
	// The compiler calls itself for each, and a stack that overflows ends the
	// process. Lua itself stops at 200.
	deepestScript = 2000
)

// compile says what keeps a script from being Lua, with its line.
func compile(script string) (err error) {
	if len(script) > longestScript {
		return fmt.Errorf("must not be longer than %d bytes, it has %d", longestScript, len(script))
	}
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
	if line, deep := tooDeep(reflect.ValueOf(chunk), deepestScript, 0); deep {
		return fmt.Errorf("line %d: more than %d expressions or blocks are inside each other", line, deepestScript)
	}
	if _, err = lua.Compile(chunk, ""); err != nil {
		if c, ok := errors.AsType[*lua.CompileError](err); ok {
			return fmt.Errorf("line %d: %s", c.Line, c.Message)
		}
		return fmt.Errorf("cannot be compiled: %w", err)
	}
	return nil
}

// syntaxError tells where the parser stopped, in one line.
func syntaxError(script string, e *parse.Error) error {
	if e.Pos.Line == parse.EOF {
		return fmt.Errorf("line %d: %s: the script ends too early", strings.Count(strings.TrimRight(script, "\n"), "\n")+1, e.Message)
	}
	return fmt.Errorf("line %d, column %d, near %q: %s", e.Pos.Line, e.Pos.Column, e.Token, e.Message)
}

// tooDeep says whether a syntax tree is deeper than that, and near which line it
// is. It looks no deeper itself.
func tooDeep(v reflect.Value, levels, line int) (int, bool) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			if at, deep := tooDeep(v.Index(i), levels, line); deep {
				return at, true
			}
		}
	case reflect.Interface:
		if !v.IsNil() {
			return tooDeep(v.Elem(), levels, line)
		}
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct {
			return 0, false
		}
		if node, ok := v.Interface().(ast.PositionHolder); ok && node.Line() > 0 {
			line = node.Line()
		}
		if levels == 0 {
			return line, true
		}
		for i := range v.Elem().NumField() {
			if at, deep := tooDeep(v.Elem().Field(i), levels-1, line); deep {
				return at, true
			}
		}
	}
	return 0, false
}
