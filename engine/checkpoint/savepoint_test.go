package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/disk"
)

// stagesFrom returns the stages of a queue. Names after "=" are those of functions.
func stagesFrom(titles ...string) Stages {
	s := Stages{Queue: "a"}
	for _, title := range titles {
		kind, name, _ := strings.Cut(title, " ")
		name, ofFunc := strings.CutPrefix(name, "=")
		if name != "" {
			kind += ` "` + name + `"`
		}
		s.Stages, s.Named = append(s.Stages, kind), append(s.Named, !ofFunc)
	}
	return s
}

// TestStagesDiffer requires that the names of functions make no difference, and that all other differences
// between stages are described by what a stage was and what it is.
func TestStagesDiffer(t *testing.T) {
	before := stagesFrom("QueueInit", "Compute =init.func1.8", "AllReduceSend pull", "Compute descend", "QueueClose")
	for _, c := range []struct {
		now  []string
		want string
	}{
		{[]string{"QueueInit", "Compute =init.func1.9", "AllReduceSend pull", "Compute descend", "QueueClose"}, ""},
		{[]string{"QueueInit", "Compute attract", "AllReduceSend pull", "Compute =descend", "QueueClose"}, ""},
		{[]string{"QueueInit", "Compute =init.func1.8", "AllReduceSend push", "Compute descend", "QueueClose"}, `stage 3 was AllReduceSend "pull", and is AllReduceSend "push" now`},
		{[]string{"QueueInit", "Compute =init.func1.8", "AllReduceSend pull", "Compute ascend", "QueueClose"}, `stage 4 was Compute "descend", and is Compute "ascend" now`},
		{[]string{"QueueInit", "Barrier", "AllReduceSend pull", "Compute descend", "QueueClose"}, `stage 2 was Compute "init.func1.8", and is Barrier now`},
		{[]string{"QueueInit", "Compute =init.func1.8", "AllReduceSend pull", "Compute more", "Compute descend", "QueueClose"}, `stage 4 was Compute "descend", and is Compute "more" now; Compute "descend" is stage 5 now`},
		{[]string{"QueueInit", "Compute descend", "QueueClose"}, `stage 3 was AllReduceSend "pull", and is QueueClose now; QueueClose was stage 5`},
		{[]string{"QueueInit", "Compute =f", "AllReduceSend pull", "Compute descend"}, `stage 5 was QueueClose, and there are only 4 stages now`},
		{[]string{"QueueInit", "Compute =f", "AllReduceSend pull", "Compute descend", "QueueClose", "Barrier"}, `stage 6 is Barrier, and there were only 5 stages`},
	} {
		now := stagesFrom(c.now...)
		require.Equal(t, c.want, before.difference(&now), "%q", c.now)
	}
	lying := Stages{Stages: []string{"", `" "`, "QueueInit"}, Named: []bool{true}}
	require.NotEmpty(t, lying.difference(&before))
}

// TestSavepointWithoutNamed requires that a savepoint is read that a program wrote which did not say which
// stages have stable names. All its stages are compared by kind.
func TestSavepointWithoutNamed(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "savepoint"))))
	store, err := JoinDir(disk.OS(), dir)
	require.NoError(t, err)
	defer store.Close()
	run := testRun
	run.Queues = []Stages{stagesFrom("QueueInit", "Compute attract", "AllReduceSend pull", "AllReduceSum pull", "AllReduceRecv pull", "Compute =init.func1.9", "QueueClose")}
	c, differs, refused, err := LoadSavepoint(t.Context(), store, run, nil)
	require.NoError(t, err)
	require.Empty(t, refused)
	require.Empty(t, differs)
	require.Equal(t, [][]byte{[]byte("a after 4")}, c.Pieces[0])
	run.Queues = []Stages{stagesFrom("QueueInit", "Barrier", "QueueClose")}
	_, _, _, err = LoadSavepoint(t.Context(), store, run, nil)
	require.ErrorContains(t, err, `queue "a" has other stages: stage 2 was Compute "init.func1.8", and is Barrier now`)
}
