package record

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLayout compares the layout with that of the recorder.
func TestLayout(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("there is no C compiler")
	}
	dir := t.TempDir()
	want := map[string]uint64{
		"VERSION": version, "FILE_HEAD": fileHead, "PROCESSES": processes, "SLOTS": slotCount, "RECORDS": records, "MODULES": moduleCount,
		"MODULE_BYTES": moduleBytes, "MODULES_AT": modulesAt, "SLOTS_AT": slotsAt, "RINGS_AT": ringsAt, "RING_BYTES": ringBytes,
		"REGION_BYTES": regionBytes, "sizeof(struct slot)": slotBytes, "sizeof(struct module)": moduleBytes,
		"offsetof(struct region_head, pid)": headPid, "offsetof(struct region_head, stop)": headStop,
		"offsetof(struct region_head, modules)": headModules, "offsetof(struct region_head, lost)": headLost,
		"offsetof(struct region_head, signals)": headSignals, "offsetof(struct region_head, ticket)": headTicket,
		"offsetof(struct slot, state)": slotState, "offsetof(struct slot, head)": slotHead, "offsetof(struct slot, tail)": slotTail,
		"offsetof(struct module, path)": 24, "offsetof(struct file_head, processes)": 4, "FREE": slotFree, "TAKEN": slotTaken, "ENDED": slotEnded,
		"READ": kindRead, "WRITE": kindWrite, "READ_RANGE": kindReadRange, "WRITE_RANGE": kindWriteRange, "ENTER": kindEnter, "EXIT": kindExit,
		"LOCK": kindLock, "UNLOCK": kindUnlock, "LOCK_SHARED": kindLockShared, "UNLOCK_RW": kindUnlockRW, "ATOMIC": kindAtomic,
		"FENCE": kindFence, "FORK": kindFork, "JOIN": kindJoin, "BEGIN": kindBegin, "END": kindEnd, "BARRIER_ENTER": kindBarrierEnter,
		"BARRIER_LEAVE": kindBarrierLeave, "ALLOCATE": kindAllocate, "RELEASE": kindRelease, "PUBLISH": kindPublish, "LEARN": kindLearn,
		"THREAD": kindThread, "TASK_MADE": kindTaskMade, "TASK": kindTask, "TASKS_ENDED": kindTasksEnded, "TASK_JOINED": kindTaskJoined,
		"FRESH": kindFresh, "LOCAL": kindLocal,
	}
	source := "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include \"layout.h\"\nint main(void) {\n"
	for name := range want {
		source += fmt.Sprintf("\tprintf(\"%%s=%%llu\\n\", %q, (unsigned long long)(%s));\n", name, name)
	}
	file := filepath.Join(dir, "layout.c")
	if err := os.WriteFile(file, []byte(source+"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "layout")
	if out, err := exec.Command(cc, "-Isrc", file, "-o", program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d of %d values", len(lines), len(want))
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, "=")
		if got := fmt.Sprint(want[name]); got != value {
			t.Errorf("%s is %s in the recorder, %s here", name, value, got)
		}
	}
}
