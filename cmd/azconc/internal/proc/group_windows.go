package proc

import (
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is the job object of a command. It closes when azconc ends, and ends with all its processes.
type group struct {
	cmd         *exec.Cmd
	job         windows.Handle
	suspensions chan os.Signal // none here
}

var resumeProcess = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")

func newGroup(cmd *exec.Cmd, _ *os.File) *group {
	// It starts suspended, so that it can start no process before it is in the job. It has its own group, so that a CTRL_BREAK
	// can be sent to it.
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP}
	return &group{cmd: cmd}
}

func (g *group) start() (err error) {
	if g.job, err = windows.CreateJobObject(nil, nil); err != nil {
		return err
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err = windows.SetInformationJobObject(g.job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
		return err
	}
	if err = g.cmd.Start(); err != nil {
		return err
	}
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE|windows.PROCESS_SUSPEND_RESUME, false, uint32(g.cmd.Process.Pid))
	if err == nil {
		defer windows.CloseHandle(process)
		err = windows.AssignProcessToJobObject(g.job, process)
	}
	if err == nil {
		if status, _, _ := resumeProcess.Call(uintptr(process)); status != 0 {
			err = windows.NTStatus(status)
		}
	}
	if err != nil {
		_ = g.cmd.Process.Kill()
		_ = g.cmd.Wait()
	}
	return err
}

func (g *group) signal(os.Signal) { g.terminate() }

func (g *group) terminate() {
	_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(g.cmd.Process.Pid))
}

func (g *group) kill() { _ = windows.TerminateJobObject(g.job, 137) }

// left kills the remaining processes: there is no TERM for them.
func (g *group) left() bool {
	g.kill()
	return false
}

func (g *group) suspend(os.Signal, func() bool) {}

func (g *group) close() {
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
	}
}

func statusOf(state *os.ProcessState) Status { return Status{Code: state.ExitCode()} }
