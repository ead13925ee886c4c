//go:build !linux

package memory

func dropProgramPages() {}
