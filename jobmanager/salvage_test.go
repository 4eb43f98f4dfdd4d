package jobmanager

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/superstep-ml/superstep/internal/wire"
)

// cordonedNames has the names of the cordoned task managers in filledHistory.
var cordonedNames = []string{"tm-0", "tm-1", "tm-2"}

// filledHistory writes a history of several pages, and the files of all its jobs, and returns
// the bytes of the history.
func filledHistory(t testing.TB, root *os.Root, n int) []byte {
	h, err := openHistory(root, hclog.NewNullLogger())
	require.NoError(t, err)
	for i := range n {
		id := wire.JobID(fmt.Sprintf("20260102-%06d-job", i))
		c, err := newChange(record{Events: uint64(i), Info: wire.JobInfo{ID: id, Name: strings.Repeat("n", 100), State: wire.JobFinished, Outcomes: [][]byte{[]byte(id)}}})
		require.NoError(t, err)
		c.plan = bytes.Repeat([]byte(id), 1+i%300)
		if i%4 == 0 {
			c.ended, c.spec = false, []byte("spec of "+id)
		}
		require.NoError(t, h.write([]change{c}))
		require.NoError(t, root.MkdirAll(jobDir(id), 0o700))
	}
	for _, name := range append(cordonedNames, "former") {
		cordon, err := wire.Marshal(&wire.Cordon{Reason: "reason of " + name})
		require.NoError(t, err)
		require.NoError(t, h.write([]change{{taskManager: name, cordon: cordon}}))
	}
	require.NoError(t, h.write([]change{{taskManager: "former"}, {taskManager: "unknown"}}))
	require.NoError(t, h.write([]change{{id: "20260102-000001-job", forget: true}}))
	require.NoError(t, root.RemoveAll(jobDir("20260102-000001-job")))
	require.NoError(t, h.close())
	data, err := root.ReadFile(historyName)
	require.NoError(t, err)
	return data
}

// everything opens a history in the same way as New, and returns its contents as text.
func everything(t testing.TB, root *os.Root) (all map[string]string, damaged string, err error) {
	h, err := openHistory(root, hclog.NewNullLogger())
	if err != nil {
		return nil, "", err
	}
	defer func() { require.NoError(t, h.close()) }()
	records, err := h.all()
	require.NoError(t, err)
	if h.damaged != "" {
		lost, err := h.replaceLost(root, records, time.Now())
		require.NoError(t, err)
		records = append(records, lost...)
	}
	all = map[string]string{}
	for _, r := range records {
		id := r.Info.ID
		outcomes, err := h.outcomes(id)
		require.NoError(t, err)
		plan, err := h.plan(id)
		require.NoError(t, err)
		spec, err := h.read(specsBucket, id)
		require.NoError(t, err)
		all[string(id)] = fmt.Sprint(r.Info.Name, r.Info.State, r.Events)
		all[string(id)+" outcomes"], all[string(id)+" plan"], all[string(id)+" spec"] = fmt.Sprint(outcomes), string(plan), string(spec)
	}
	cordons, err := h.cordons()
	require.NoError(t, err)
	require.NoError(t, h.replaceLostCordons(cordons, time.Now()))
	for _, name := range cordonedNames {
		all[name+" cordon"], _, _ = strings.Cut(cordons[name].Reason, ",")
	}
	require.LessOrEqual(t, len(cordons), len(cordonedNames))
	require.NoError(t, h.write(nil), "the opened history must accept writes")
	return all, h.damaged, nil
}

// TestDamagedHistory damages the file of a history in many ways. Either all contents must still
// be right, or the damaged file must be renamed. If it is renamed, all remaining values must be
// right and all jobs must be listed; a job whose record is lost must be listed as failed.
func TestDamagedHistory(t *testing.T) {
	root := testRoot(t)
	data := filledHistory(t, root, 40)
	want, damaged, err := everything(t, root)
	require.NoError(t, err)
	require.Empty(t, damaged)
	require.Len(t, want, 4*39+len(cordonedNames))
	page := os.Getpagesize()
	draw := rand.New(rand.NewPCG(1, 2))
	flip := func(data []byte, from, to int) []byte {
		data[from+draw.IntN(to-from)] ^= 1 << draw.IntN(8)
		return data
	}
	damages := map[string]func([]byte) []byte{"garbage": func(d []byte) []byte { return bytes.Repeat([]byte("garbage "), len(d)/8) }}
	for i, n := range []int{0, 1, 100, page, page + 1, 2 * page, 2*page + 100, 3 * page, len(data) / 2, len(data) - page, len(data) - 1} {
		damages[fmt.Sprintf("cut %d at %d", i, n)] = func(d []byte) []byte { return d[:n] }
	}
	for i := range damageRounds {
		damages[fmt.Sprintf("flip in meta %d", i)] = func(d []byte) []byte { m := page * draw.IntN(2); return flip(d, m, m+80) }
		damages[fmt.Sprintf("flip in pages %d", i)] = func(d []byte) []byte { return flip(d, 2*page, len(d)) }
		damages[fmt.Sprintf("flip in a head %d", i)] = func(d []byte) []byte {
			p := page * (2 + draw.IntN(len(d)/page-2))
			return flip(d, p, p+64)
		}
		damages[fmt.Sprintf("zeroed page %d", i)] = func(d []byte) []byte {
			p := page * draw.IntN(len(d)/page)
			clear(d[p : p+page])
			return d
		}
		damages[fmt.Sprintf("page of another %d", i)] = func(d []byte) []byte {
			from, to := page*(2+draw.IntN(len(d)/page-2)), page*(2+draw.IntN(len(d)/page-2))
			copy(d[to:to+page], d[from:from+page])
			return d
		}
	}
	// The following damages leave a well-formed tree, so that only the contentSum detects them:
	// a leaf without its last value, and a branch that is its own child.
	leaves, branches := 0, 0
	for at := 2 * page; at < len(data); at += page {
		kind, n := binary.NativeEndian.Uint16(data[at+8:]), binary.NativeEndian.Uint16(data[at+10:])
		switch {
		case kind == 2 && n > 1:
			leaves++
			damages[fmt.Sprintf("leaf %d without its last", at/page)] = func(d []byte) []byte {
				binary.NativeEndian.PutUint16(d[at+10:], n-1)
				return d
			}
		case kind == 1 && n > 0:
			branches++
			damages[fmt.Sprintf("branch %d in itself", at/page)] = func(d []byte) []byte {
				binary.NativeEndian.PutUint64(d[at+16+8:], uint64(at/page))
				return d
			}
		}
	}
	require.Positive(t, leaves)
	require.Positive(t, branches)
	seen := 0
	for _, name := range slices.Sorted(maps.Keys(damages)) { // in a fixed order, so that the random draws are the same in every run
		damage, root := damages[name], testRoot(t)
		for key := range want {
			if id, _, plain := strings.Cut(key, " "); !plain {
				require.NoError(t, root.MkdirAll(jobDir(wire.JobID(id)), 0o700))
			}
		}
		bad := damage(bytes.Clone(data))
		require.NoError(t, root.WriteFile(historyName, bad, 0o600))
		got, damaged, err := everything(t, root)
		require.NoError(t, err, name)
		if damaged == "" {
			require.Equal(t, want, got, name)
			continue
		}
		seen++
		kept, err := root.ReadFile(damaged)
		require.NoError(t, err)
		require.Equal(t, bad, kept, "the renamed file must have all bytes of the damaged file")
		for key, value := range want {
			found, there := got[key]
			require.True(t, there, "%s: %s must be listed", name, key)
			id, _, part := strings.Cut(key, " ")
			switch {
			case part:
				require.Contains(t, []string{value, "", "[]", "why and since when is lost"}, found, "%s: %s", name, key)
			case found != value:
				require.Equal(t, id+"failed 0", found, "%s: %s", name, key)
			}
		}
		_, damaged, err = everything(t, root)
		require.NoError(t, err)
		require.Empty(t, damaged, "%s: the new file must not be damaged", name)
	}
	require.Greater(t, seen, len(damages)/2)
}

// TestRecordsAreChecked requires that a changed value and a value under another key are
// rejected.
func TestRecordsAreChecked(t *testing.T) {
	sealed := seal(jobsBucket, []byte("a"), []byte("value"))
	value, err := unseal(jobsBucket, []byte("a"), sealed)
	require.NoError(t, err)
	require.Equal(t, "value", string(value))
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 4
		_, err := unseal(jobsBucket, []byte("a"), bad)
		require.ErrorIs(t, err, errSeal)
	}
	for _, other := range []struct{ bucket, key string }{{"jobs", "b"}, {"plans", "a"}, {"job", "sa"}} {
		_, err := unseal([]byte(other.bucket), []byte(other.key), sealed)
		require.ErrorIs(t, err, errSeal)
	}
	_, err = unseal(jobsBucket, []byte("a"), nil)
	require.ErrorIs(t, err, errSeal)

	root := testRoot(t)
	filledHistory(t, root, 3)
	h, err := openHistory(root, hclog.NewNullLogger())
	require.NoError(t, err)
	id := wire.JobID("20260102-000002-job")
	require.NoError(t, h.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range dataBuckets {
			if v := bytes.Clone(tx.Bucket(name).Get([]byte(id))); v != nil {
				v[0] ^= 1
				require.NoError(t, tx.Bucket(name).Put([]byte(id), v))
			}
		}
		return nil
	}))
	_, err = h.all()
	require.ErrorIs(t, err, errSeal)
	_, err = h.plan(id)
	require.ErrorIs(t, err, errSeal)
	_, err = h.outcomes(id)
	require.ErrorIs(t, err, errSeal)
	require.NoError(t, h.close())
}

// TestDamagedHistoryOfAJobManager requires that a job manager with a damaged history starts,
// lists the lost jobs as failed, and accepts new jobs. After another start it must list the
// lost jobs too.
func TestDamagedHistoryOfAJobManager(t *testing.T) {
	dir := t.TempDir()
	in := func(c *Config) { c.Dir = dir }
	m := start(t, in)
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	id := submit(t, c, specOf(t, 1))
	tm.run()
	require.NoError(t, m.Close())
	data, err := os.ReadFile(dir + "/" + historyName)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/"+historyName, data[:2*os.Getpagesize()], 0o600)) // no record is left
	for range 2 {
		m = start(t, in)
		c = dial(t, m, testToken, nil)
		info, err := c.Show(bounded(t), &wire.ShowRequest{Job: id})
		require.NoError(t, err)
		require.Equal(t, wire.JobFailed, info.State)
		submit(t, c, specOf(t, 1))
		require.NoError(t, m.Close())
	}
	_, err = os.Stat(dir + "/" + historyName + ".damaged-1")
	require.NoError(t, err)
	_, err = os.Stat(dir + "/" + historyName + ".damaged-2")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestDamagedHistoryCounts requires that the log has the number of lost values, or says that
// this number is unknown if the number of values cannot be read from the file.
func TestDamagedHistoryCounts(t *testing.T) {
	t.Parallel()
	logged := func(root *os.Root) string {
		var lines bytes.Buffer
		h, err := openHistory(root, hclog.New(&hclog.LoggerOptions{Output: &lines}))
		require.NoError(t, err)
		require.NoError(t, h.close())
		return lines.String()
	}
	root := testRoot(t)
	data := filledHistory(t, root, 7)
	db, err := bbolt.Open(root.Name()+"/"+historyName, 0o600, nil)
	require.NoError(t, err)
	all, damaged := 0, 0
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		for _, name := range dataBuckets {
			b := tx.Bucket(name)
			all += b.Stats().KeyN
			if v := bytes.Clone(b.Get([]byte("20260102-000002-job"))); v != nil {
				damaged++
				v[0] ^= 1
				require.NoError(t, b.Put([]byte("20260102-000002-job"), v))
			}
		}
		return nil
	}))
	require.NoError(t, db.Close())
	require.Positive(t, damaged)
	require.Contains(t, logged(root), fmt.Sprintf("values kept=%d values lost=%d\n", all-damaged, damaged))

	for name, bad := range map[string][]byte{"empty": {}, "garbage": bytes.Repeat([]byte("garbage "), 4096), "cut": data[:2*os.Getpagesize()]} {
		root := testRoot(t)
		require.NoError(t, root.MkdirAll(jobDir("20260102-000002-job"), 0o700))
		require.NoError(t, root.WriteFile(historyName, bad, 0o600))
		require.Contains(t, logged(root), `values kept=0 values lost="unknown how many"`, name)
	}
}
