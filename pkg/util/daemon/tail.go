package daemon

import (
	"io"
	"os"
	"strings"
)

const (
	maxLines     = 20
	maxLineBytes = 500
	// maxTailBytes is how far back the last lines are looked for.
	maxTailBytes = 64 << 10
)

// tail finds the last words of a process in its log.
type tail struct {
	path string
	from int64 // where the process began to write
}

// lines returns the last lines. They decorate an error, so a log that cannot be
// read has none.
func (t tail) lines() []string {
	if t.path == "" {
		return nil
	}
	f, err := os.Open(t.path)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	from := t.from
	if info.Size() < from {
		from = 0 // the log was rotated
	}
	cut := info.Size()-from > maxTailBytes
	if cut {
		from = info.Size() - maxTailBytes
	}
	data, err := io.ReadAll(io.NewSectionReader(f, from, maxTailBytes))
	if err != nil {
		return nil
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	if cut {
		all = all[1:] // the first one is the end of a line only
	}
	return last(redact(all))
}

// last returns the last lines that are not empty, each of bearable length.
func last(all []string) []string {
	var some []string
	for _, l := range all {
		if l = strings.TrimRight(l, " \t\r"); l == "" {
			continue
		}
		if len(l) > maxLineBytes {
			l = strings.ToValidUTF8(l[:maxLineBytes], "") + "…"
		}
		some = append(some, l)
	}
	return some[max(0, len(some)-maxLines):]
}
