package proc

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// What moves to another session and loses its parent is ended at the deadline all the same.
func TestADeadlineEndsWhatHasLeftTheGroup(t *testing.T) {
	deadlines := make(chan Deadline)
	r := startWith(t, &Command{Deadline: After(time.Hour), Deadlines: deadlines},
		`trap '' TERM; (setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 0.02; done' &); echo $$; while :; do sleep 0.02; done`)
	out := r.out.wait(2)
	deadlines <- After(10 * time.Millisecond)
	if s := <-r.status; s.Signal != "killed" || s.Left {
		t.Errorf("%+v", s)
	}
	for _, pid := range pids(out) {
		if alive(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
}

func TestALaterDeadlineReplacesAnEarlierOne(t *testing.T) {
	deadlines := make(chan Deadline)
	r := startWith(t, &Command{Deadline: After(time.Second), Deadlines: deadlines}, `echo up; sleep 1.2; exit 3`)
	r.out.wait(1)
	deadlines <- After(time.Hour)
	if s := <-r.status; s.Code != 3 {
		t.Errorf("%+v", s)
	}
}

// A command gets the files that it is given under the numbers they have here.
func TestFilesKeepTheirNumbers(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	<-startWith(t, &Command{Inherit: []*os.File{file}}, fmt.Sprintf(`echo text >&%d`, file.Fd())).status
	if text, err := os.ReadFile(file.Name()); err != nil || string(text) != "text\n" {
		t.Errorf("written %q, %v", text, err)
	}
}
