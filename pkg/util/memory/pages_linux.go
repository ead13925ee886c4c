package memory

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dropProgramPages unmaps the resident pages of the program's code. They are never written, so the kernel takes them
// from the file again when they are touched. It is an advice: what cannot be dropped stays.
func dropProgramPages() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		if start, length, ok := code(lines.Text(), self); ok {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, length, unix.MADV_DONTNEED)
		}
	}
}

// code reads a line of /proc/self/maps. It reports whether that is a mapping of file's code. Pages of any other
// mapping must not be dropped: even one that is only readable now may have been written by the dynamic linker before.
func code(line, file string) (start, length uintptr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 6 || strings.Join(fields[5:], " ") != file || fields[1] != "r-xp" {
		return 0, 0, false
	}
	from, to, _ := strings.Cut(fields[0], "-")
	first, err := strconv.ParseUint(from, 16, 64)
	if err != nil {
		return 0, 0, false
	}
	end, err := strconv.ParseUint(to, 16, 64)
	if err != nil || end <= first {
		return 0, 0, false
	}
	return uintptr(first), uintptr(end - first), true
}
