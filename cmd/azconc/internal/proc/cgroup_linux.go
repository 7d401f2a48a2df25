package proc

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// cgroups is where the cgroups of version 2 are: all of them, or beside those of version 1.
var cgroups = []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}

// cgroup is a control group for the processes of one command, below this process's own. The kernel kills all that is in it at
// once, whatever user it runs as, together with what is being started. A nil cgroup has no effect: few users may create one.
type cgroup struct {
	dir    string
	killer *os.File // open from the beginning: the command may use up the files that can be opened
}

const cgroupPrefix = "azconc-"

// newCgroup returns nil where none can be created, or killed.
func newCgroup() *cgroup {
	parent, ok := ownCgroup()
	if !ok {
		return nil
	}
	dir := filepath.Join(parent, cgroupPrefix+strconv.Itoa(os.Getpid()))
	if os.Mkdir(dir, 0o755) != nil {
		return nil
	}
	c := openCgroup(dir)
	if c == nil {
		_ = os.Remove(dir)
	}
	return c
}

func openCgroup(dir string) *cgroup {
	killer, err := os.OpenFile(filepath.Join(dir, "cgroup.kill"), os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	return &cgroup{dir: dir, killer: killer}
}

// ownCgroup returns the directory of this process's cgroup, version 2.
func ownCgroup() (dir string, ok bool) {
	text, err := os.ReadFile(procfs + "/self/cgroup")
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(text)) {
		own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		for _, root := range cgroups {
			if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
				return filepath.Join(root, own), true
			}
		}
	}
	return "", false
}

// launch is syscall.ForkExec with the new process in the cgroup.
func (c *cgroup) launch(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	itself, err := os.Open(c.dir)
	if err != nil {
		return 0, err
	}
	defer func() { _ = itself.Close() }()
	sys := *attr.Sys
	sys.UseCgroupFD, sys.CgroupFD = true, int(itself.Fd())
	within := *attr
	within.Sys = &sys
	return syscall.ForkExec(path, argv, &within)
}

// kill kills everything in it.
func (c *cgroup) kill() {
	if c != nil {
		_, _ = c.killer.WriteAt([]byte("1"), 0)
	}
}

func (c *cgroup) path() string {
	if c == nil {
		return ""
	}
	return c.dir
}

// remove removes it, with those below it, which is possible if nothing is left in it.
func (c *cgroup) remove() {
	if c == nil {
		return
	}
	_ = c.killer.Close()
	var all []string
	_ = filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return nil
	})
	for _, dir := range slices.Backward(all) {
		_ = os.Remove(dir)
	}
}
