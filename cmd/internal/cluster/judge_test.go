package cluster

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// verdict is what became of the messages, or of the slots, of one scene.
type verdict struct {
	effects     int // ids with an effect
	again       int // effects that another one of the same id follows, after the pod of the first was killed
	unexplained int // others that another one follows
}

// judge reads the lines "<scene> <id> <pod>" of one scene, and "killed <pod>" of all.
func judge(lines []string, scene string) (v verdict) {
	seen := map[string]string{} // id to the pod of its last effect
	dead := map[string]bool{}   // by id and pod
	for _, line := range lines {
		f := strings.Fields(line)
		switch {
		case len(f) == 2 && f[0] == "killed":
			for id, pod := range seen {
				if pod == f[1] {
					dead[id] = true
				}
			}
		case len(f) == 3 && f[0] == scene:
			if _, twice := seen[f[1]]; twice && dead[f[1]] {
				v.again++
			} else if twice {
				v.unexplained++
			}
			seen[f[1]], dead[f[1]] = f[2], false
		}
	}
	v.effects = len(seen)
	return v
}

// terms reads the lines "leader <begin or end> <pod>", and "killed <pod>". It returns who began to lead, in order, and how often that
// was while another led.
func terms(lines []string) (leaders []string, overlaps int) {
	holder := ""
	for _, line := range lines {
		f := strings.Fields(line)
		switch {
		case len(f) == 2 && f[0] == "killed" && f[1] == holder, len(f) == 3 && f[0] == "leader" && f[1] == "end" && f[2] == holder:
			holder = ""
		case len(f) == 3 && f[0] == "leader" && f[1] == "begin":
			if holder != "" {
				overlaps++
			}
			holder = f[2]
			leaders = append(leaders, holder)
		}
	}
	return leaders, overlaps
}

// shifts reads the lines "ingest <part> <worker>", which a worker writes again and again. It returns how many parts had a worker, and how
// often one worked on after another had begun.
func shifts(lines []string) (parts, overlaps int) {
	worker := map[string]string{} // by the part
	over := map[string]bool{}     // by the part and the worker
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != "ingest" || worker[f[1]] == f[2] {
			continue
		}
		if before, was := worker[f[1]]; was {
			over[f[1]+" "+before] = true
		}
		if over[f[1]+" "+f[2]] {
			overlaps++
		}
		worker[f[1]] = f[2]
	}
	return len(worker), overlaps
}

func TestTheJudgesConvict(t *testing.T) {
	lines := []string{"s 1 a", "s 2 a", "killed a", "s 2 b", "s 3 b", "s 3 c", "other 4 c", "killed c", "s 3 b"}
	if v := judge(lines, "s"); v != (verdict{effects: 3, again: 2, unexplained: 1}) {
		t.Errorf("%+v", v)
	}
	lines = []string{"leader begin a", "killed b", "killed a", "leader begin b", "leader end b", "leader begin c", "leader begin a"}
	if leaders, overlaps := terms(lines); !slices.Equal(leaders, []string{"a", "b", "c", "a"}) || overlaps != 1 {
		t.Errorf("%q, %d", leaders, overlaps)
	}
	lines = []string{"ingest 1 a", "ingest 2 a", "ingest 1 a", "ingest 1 b", "ingest 2 a", "ingest 1 a", "ingest 1 c"}
	if parts, overlaps := shifts(lines); parts != 2 || overlaps != 1 {
		t.Errorf("%d parts, %d overlaps", parts, overlaps)
	}
}

// note appends a line to a file.
func note(path, line string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(line + "\n")
	return err
}
