//go:build !linux

package local

import "io/fs"

func lockID(fs.FileInfo) (string, bool) { return "", false }
