package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A Watched process is one to measure.
type Watched struct {
	PID  int
	Name string
}

// A Usage is what a process holds and does. Memory is in bytes.
type Usage struct {
	// RSS is what is resident: Anonymous, plus mapped files and shared memory. PSS counts what several processes
	// share only in part. Peak is the highest RSS of its life.
	RSS, Anonymous, File, PSS, Peak float64
	// CPU is in cores: 1 is one core busy all the time.
	CPU float64
}

func (u Usage) plus(v Usage) Usage {
	return Usage{
		RSS: u.RSS + v.RSS, Anonymous: u.Anonymous + v.Anonymous, File: u.File + v.File, PSS: u.PSS + v.PSS,
		Peak: u.Peak + v.Peak, CPU: u.CPU + v.CPU,
	}
}

func addUsage(e *Env, before, after string, u Usage) {
	e.Add(before+"RSS"+after, MiB, u.RSS/mebi)
	e.Add(before+"anonymous"+after, MiB, u.Anonymous/mebi)
	e.Add(before+"file-mapped"+after, MiB, u.File/mebi)
	e.Add(before+"PSS"+after, MiB, u.PSS/mebi)
	e.Add(before+"peak RSS"+after, MiB, u.Peak/mebi)
	e.Add(before+"CPU"+after, Cores, u.CPU)
}

// idle leaves processes alone for a while, then measures how much processor they use and how much memory they hold.
func idle(ctx context.Context, s Settings, watched []Watched) ([]Usage, error) {
	if err := pause(ctx, s.Settle); err != nil {
		return nil, err
	}
	begin := time.Now()
	before, err := cpuTimes(watched)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, s.Idle); err != nil {
		return nil, err
	}
	after, err := cpuTimes(watched)
	if err != nil {
		return nil, err
	}
	window := time.Since(begin)
	var all []Usage
	for i, w := range watched {
		u, err := memory(w.PID)
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", w.Name, err)
		}
		u.CPU = (after[i] - before[i]).Seconds() / window.Seconds()
		all = append(all, u)
	}
	return all, nil
}

func cpuTimes(watched []Watched) ([]time.Duration, error) {
	var all []time.Duration
	for _, w := range watched {
		t, err := cpuTime(w.PID)
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", w.Name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// clockTick is the unit of times in /proc. It is 100 Hz on every Linux that Go runs on.
const clockTick = time.Second / 100

// cpuTime is what a process has used so far, in user and kernel mode.
func cpuTime(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseCPUTime(string(data))
}

func parseCPUTime(stat string) (time.Duration, error) {
	// The name, in brackets, may hold anything; what follows it is numbers. utime and stime are fields 14 and 15.
	const utime, stime, afterName = 14, 15, 3
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= stime-afterName {
		return 0, fmt.Errorf("read processor times: unexpected %q", stat)
	}
	user, err := strconv.ParseInt(fields[utime-afterName], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read processor times: %w", err)
	}
	system, err := strconv.ParseInt(fields[stime-afterName], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read processor times: %w", err)
	}
	return time.Duration(user+system) * clockTick, nil
}

// memory is what a process holds now.
func memory(pid int) (Usage, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, err
	}
	s := parseSizes(string(status))
	u := Usage{RSS: s["VmRSS"], Anonymous: s["RssAnon"], File: s["RssFile"] + s["RssShmem"], Peak: s["VmHWM"]}
	if u.RSS == 0 {
		return Usage{}, errors.New("it has ended")
	}
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return Usage{}, err
	}
	u.PSS = parseSizes(string(rollup))["Pss"]
	return u, nil
}

// parseSizes reads lines such as "VmRSS:   1024 kB"; the result is in bytes.
func parseSizes(text string) map[string]float64 {
	sizes := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, ":")
		number, isSize := strings.CutSuffix(strings.TrimSpace(value), " kB")
		if !ok || !isSize {
			continue
		}
		if n, err := strconv.ParseFloat(number, 64); err == nil {
			sizes[name] = n * 1024
		}
	}
	return sizes
}

// diskUsage is how many bytes of the disk the files below dir take. Files that go meanwhile do not count.
func diskUsage(dir string) (int64, error) {
	const blockSize = 512
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			total += stat.Blocks * blockSize
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("measure the size of %s: %w", dir, err)
	}
	return total, nil
}
