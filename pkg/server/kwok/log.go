package kwok

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
)

const (
	// changeVerbosity shows each change of a node or a pod.
	changeVerbosity = 4
	// debugVerbosity shows also why nothing was changed.
	debugVerbosity = 6
)

// withKwokLogger makes kwok, which takes its logger from the context and would
// else write to the process's default one, log to l.
func withKwokLogger(ctx context.Context, l logr.Logger) context.Context {
	level := kwoklog.LevelWarn
	switch {
	case l.V(debugVerbosity).Enabled():
		level = kwoklog.LevelDebug
	case l.V(changeVerbosity).Enabled():
		level = kwoklog.LevelInfo
	}
	return kwoklog.NewContext(ctx, kwoklog.NewLogger(&logWriter{ctx: ctx, log: l}, level))
}

// A logWriter takes the JSON records that kwok's logger writes: it can be given
// a writer, but no handler.
type logWriter struct {
	ctx context.Context
	log logr.Logger
}

// Write logs one record.
func (w *logWriter) Write(p []byte) (int, error) {
	var record map[string]any
	if err := json.Unmarshal(p, &record); err != nil {
		w.log.Info(string(p))
		return len(p), nil
	}

	var level slog.Level
	name, _ := record[slog.LevelKey].(string)
	if err := level.UnmarshalText([]byte(name)); err != nil {
		level = slog.LevelWarn
	}
	if level >= slog.LevelWarn && w.ctx.Err() != nil {
		return len(p), nil // requests that fail because everything is stopping
	}

	msg, _ := record[slog.MessageKey].(string)
	var cause error
	if text, ok := record["err"].(string); ok {
		cause = errors.New(text)
	}
	for _, k := range []string{slog.LevelKey, slog.MessageKey, slog.TimeKey, slog.SourceKey, "err"} {
		delete(record, k)
	}
	var kv []any
	for _, k := range slices.Sorted(maps.Keys(record)) {
		kv = append(kv, k, record[k])
	}

	switch {
	case level >= slog.LevelError:
		w.log.Error(cause, msg, kv...)
	case level >= slog.LevelWarn:
		if cause != nil {
			kv = append(kv, "err", cause)
		}
		w.log.Info(msg, kv...)
	case level >= slog.LevelInfo:
		w.log.V(changeVerbosity).Info(msg, kv...)
	default:
		w.log.V(debugVerbosity).Info(msg, kv...)
	}
	return len(p), nil
}

// errorLog takes what the HTTP server has to say, such as failed handshakes.
func errorLog(l logr.Logger) *log.Logger {
	return log.New(httpLogWriter{l}, "", 0)
}

type httpLogWriter struct{ log logr.Logger }

func (w httpLogWriter) Write(p []byte) (int, error) {
	w.log.V(changeVerbosity).Info(strings.TrimSpace(string(p)))
	return len(p), nil
}
