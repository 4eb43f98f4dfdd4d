package jobmanager

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

// fetchedBy returns an executable that it fetches from the job manager as a task manager does.
func fetchedBy(t testing.TB, c *wire.Client, hash string) (got []byte) {
	stream, err := c.FetchArtifact(bounded(t), &wire.FetchRequest{Hash: hash})
	require.NoError(t, err)
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return got
		}
		require.NoError(t, err)
		got = append(got, chunk.Data...)
	}
}

// TestJobsOfNoExecutable requires that if a client names no executable, all workers of its job
// run the job manager's own executable, whatever build the task managers run. The job's record
// must name this executable after a restart too.
func TestJobsOfNoExecutable(t *testing.T) {
	dir := t.TempDir()
	own := executable(ownSalt)
	m := start(t, func(c *Config) { c.Dir = dir })
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	id := submit(t, c, specOf(t, 1))
	d := tm.run()
	require.Equal(t, hashOf(own), d.Spec.Artifact)
	require.Equal(t, own, fetchedBy(t, c, hashOf(own)))
	tm.succeed(d.WorkerRef, "")
	eventually(t, "the executable is no longer pinned", func() bool {
		m.artifacts.Lock()
		defer m.artifacts.Unlock()
		return m.artifacts.Kept[hashOf(own)].Pins == 0
	})
	check := func(c *wire.Client) {
		info, err := c.Show(bounded(t), &wire.ShowRequest{Job: id})
		require.NoError(t, err)
		require.Equal(t, hashOf(own), info.Artifact)
		require.Equal(t, "test", info.Build)
	}
	check(c)
	nodes, err := c.TaskManagers(bounded(t), &wire.TaskManagersRequest{})
	require.NoError(t, err)
	require.Equal(t, hashOf([]byte("tm")), nodes.TaskManagers[0].Executable)
	require.NoError(t, m.Close())
	check(dial(t, start(t, func(c *Config) { c.Dir = dir }), testToken, nil))
}

// TestOwnExecutableNeedsNoUpload requires that a client with the same build as the job manager
// need not upload its executable.
func TestOwnExecutableNeedsNoUpload(t *testing.T) {
	m := start(t, func(c *Config) { c.MaxArtifact = 10 }) // this must limit only executables of other builds
	c := dial(t, m, testToken, nil)
	own := executable(ownSalt)
	reply, err := c.HasArtifact(bounded(t), &wire.HasArtifactRequest{Hash: hashOf(own), Size: int64(len(own))})
	require.NoError(t, err)
	require.True(t, reply.Has)
	require.Equal(t, own, fetchedBy(t, c, hashOf(own)))
}

// TestJobsOfNoExecutableElsewhere submits a job that names no executable to a cluster in which
// no task manager has the platform of the job manager. The job must run the build that all task
// managers run. If the task managers run several builds, the job must be refused.
func TestJobsOfNoExecutableElsewhere(t *testing.T) {
	m := start(t)
	c := dial(t, m, testToken, nil)
	arm := registration("a", 1)
	arm.Platform.Arch, arm.Build = "arm64", "v1"
	tm := join(t, c, arm)
	id := submit(t, c, specOf(t, 1))
	d := tm.run()
	require.Equal(t, arm.Executable, d.Spec.Artifact)
	require.True(t, d.Spec.Resident)
	tm.succeed(d.WorkerRef, "")
	info, err := c.Show(bounded(t), &wire.ShowRequest{Job: id})
	require.NoError(t, err)
	require.Equal(t, arm.Executable, info.Artifact)
	require.Equal(t, "v1", info.Build)

	other := registration("b", 1)
	other.Platform.Arch, other.Build, other.Executable = "arm64", "v2", hashOf([]byte("other"))
	join(t, c, other)
	_, err = c.Submit(bounded(t), &wire.SubmitRequest{Spec: specOf(t, 1)})
	require.Equal(t, codes.FailedPrecondition, wire.Code(err))
	require.ErrorContains(t, err, "the task managers run several builds (v1, executable "+arm.Executable[:12]+" (on tm-a); v2, executable "+other.Executable[:12]+" (on tm-b)): upgrade them to one, or submit the job with the superstep command")
}

// TestNoUploadsOfOtherBuilds switches uploads off. A job may then run the job manager's own
// executable on all task managers, and the executable of a task manager on the task managers
// that run this executable. Any other executable must be refused, even if it was uploaded
// before, and the message must name the builds that are accepted.
func TestNoUploadsOfOtherBuilds(t *testing.T) {
	dir := t.TempDir()
	before := executable("uploaded before")
	m := start(t, func(c *Config) { c.Dir = dir })
	require.NoError(t, upload(t, dial(t, m, testToken, nil), hashOf(before), int64(len(before)), before))
	require.NoError(t, m.Close())

	m = start(t, func(c *Config) { c.Dir, c.NoUploads = dir, true })
	c := dial(t, m, testToken, nil)
	with := func(hash string) wire.JobSpec {
		spec := specOf(t, 1)
		spec.Artifact, spec.Platform, spec.Build = hash, linux, "v9"
		spec.WaitTimeout = time.Minute
		return spec
	}
	old, upgraded := registration("a", 1), registration("b", 1)
	upgraded.Executable, upgraded.Build = hashOf([]byte("new")), "v2"
	first := join(t, c, old)
	second := join(t, c, upgraded)

	for _, hash := range []string{hashOf(before), hashOf([]byte("unknown"))} {
		_, err := c.Submit(bounded(t), &wire.SubmitRequest{Spec: with(hash)})
		require.Equal(t, codes.FailedPrecondition, wire.Code(err))
		require.ErrorContains(t, err, "takes no uploads: it runs built-in jobs only")
		require.ErrorContains(t, err, "This program's is v9, executable "+hash[:12]+", the job manager's test, executable "+m.own.Hash[:12]+
			", those of task managers are test, executable "+old.Executable[:12]+" (on tm-a); v2, executable "+upgraded.Executable[:12]+" (on tm-b): run the job with one of these, or upgrade them to this program's")
	}
	_, err := c.Submit(bounded(t), &wire.SubmitRequest{Spec: with("../x")})
	require.Equal(t, codes.InvalidArgument, wire.Code(err))

	submit(t, c, with(upgraded.Executable))
	d := second.run()
	require.Equal(t, upgraded.Executable, d.Spec.Artifact)
	waits := submit(t, c, with(upgraded.Executable)) // this job must wait, although the other task manager has a free slot
	info, err := c.Show(bounded(t), &wire.ShowRequest{Job: waits})
	require.NoError(t, err)
	require.Contains(t, info.Detail, "0 of 1 are free (1 task manager of linux/amd64 that runs executable "+upgraded.Executable[:12]+" itself)")
	second.succeed(d.WorkerRef, "")
	second.succeed(second.run().WorkerRef, "")

	submit(t, c, with(m.own.Hash))
	own := first.run()
	require.Equal(t, m.own.Hash, own.Spec.Artifact)
	require.Equal(t, executable(ownSalt), fetchedBy(t, c, m.own.Hash), "any task manager must be able to fetch the job manager's own executable")
	first.succeed(own.WorkerRef, "")
}

// TestResidentCannotBeAskedFor requires that a client cannot set JobSpec.Resident, with which
// the job manager marks jobs whose executable only task managers have.
func TestResidentCannotBeAskedFor(t *testing.T) {
	m := start(t)
	c := dial(t, m, testToken, nil)
	spec := specOf(t, 1)
	spec.Artifact, spec.Platform, spec.Resident = hashOf([]byte("tm")), linux, true
	join(t, c, registration("a", 1))
	_, err := c.Submit(bounded(t), &wire.SubmitRequest{Spec: spec})
	require.Equal(t, codes.NotFound, wire.Code(err))
	require.ErrorContains(t, err, "upload it first")
}
