package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

// A Machine is what the figures depend on most.
type Machine struct {
	Cores  int     `json:"cores"`
	CPU    string  `json:"cpu,omitempty"`
	MiB    float64 `json:"memoryMiB"`
	Kernel string  `json:"kernel"`
	Arch   string  `json:"arch"`
}

// A Build is what was measured. What cannot be found out is left empty: figures without it are still figures.
type Build struct {
	Go     string `json:"go"`
	Commit string `json:"commit,omitempty"`
	Tree   string `json:"treeState,omitempty"`
}

func describeMachine() Machine {
	return Machine{
		Cores:  runtime.NumCPU(),
		CPU:    field("/proc/cpuinfo", "model name"),
		MiB:    parseSizes(text("/proc/meminfo"))["MemTotal"] / mebi,
		Kernel: text("/proc/sys/kernel/osrelease"),
		Arch:   runtime.GOARCH,
	}
}

// describeBuild asks the program itself what it was built from.
func describeBuild(ctx context.Context, b rig.Binaries) Build {
	out, err := exec.CommandContext(ctx, b.Karmadactl, "version", "-o", "json").Output()
	if err != nil {
		return Build{Go: runtime.Version()}
	}
	return parseBuild(out)
}

// parseBuild finds the build wherever in the document it is.
func parseBuild(document []byte) Build {
	type info struct {
		GitCommit    string `json:"gitCommit"`
		GitTreeState string `json:"gitTreeState"`
		GoVersion    string `json:"goVersion"`
	}
	var nested map[string]json.RawMessage
	if err := json.Unmarshal(document, &nested); err != nil {
		return Build{Go: runtime.Version()}
	}
	candidates := []json.RawMessage{document}
	for _, value := range nested {
		candidates = append(candidates, value)
	}
	for _, candidate := range candidates {
		var i info
		if err := json.Unmarshal(candidate, &i); err == nil && i.GoVersion != "" {
			return Build{Go: i.GoVersion, Commit: i.GitCommit, Tree: i.GitTreeState}
		}
	}
	return Build{Go: runtime.Version()}
}

// wasBusy reports whether the machine had more to do before the run than it has cores to spare for.
func wasBusy(load string) bool {
	first, _, _ := strings.Cut(load, " ")
	n, err := strconv.ParseFloat(first, 64)
	return err == nil && n > float64(runtime.NumCPU())/2
}

// loadAverage is the load of the last minute, five and fifteen: figures of a machine that does other things tell less.
func loadAverage() string {
	fields := strings.Fields(text("/proc/loadavg"))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

func field(path, name string) string {
	for line := range strings.Lines(text(path)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// text returns the content of a small file, or nothing when it cannot be read.
func text(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
