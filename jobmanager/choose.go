package jobmanager

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// All workers of a job run the same executable, identified by its hash, because two builds of
// the same version may compute different numbers. A task manager fetches the executable from
// the job manager, unless it is the task manager's own executable. If uploads are switched off,
// jobs can run only the executables of the job manager and of the task managers.

// noUploads is the error message of uploads if Config.NoUploads is set.
const noUploads = "this job manager takes no uploads: it runs built-in jobs only, such as superstep run kmeans"

// choose decides which executable a job runs, sets it in s, and pins it, unless only task
// managers have it.
func (m *Manager) choose(s *wire.JobSpec) error {
	s.Resident = false
	if s.Artifact == "" {
		if err := m.chooseExecutable(s); err != nil {
			return err
		}
	}
	own := m.own.Hash != "" && s.Artifact == m.own.Hash
	if m.config.NoUploads && !own {
		if err := programs.CheckHash(s.Artifact); err != nil {
			return wire.Error(codes.InvalidArgument, "%v", err)
		}
		if !slices.ContainsFunc(m.presentTaskManagers(), func(n wire.TaskManagerInfo) bool { return n.Executable == s.Artifact }) {
			return m.refuseForeign(s)
		}
		s.Resident = true
	}
	if s.Resident {
		return nil
	}
	if own {
		if err := m.artifacts.offer(m.own); err != nil {
			return artifactError(err)
		}
	}
	if err := m.artifacts.pin(s.Artifact, s.Platform); err != nil {
		return artifactError(err)
	}
	return nil
}

// unpin undoes the pin of choose.
func (m *Manager) unpin(s *wire.JobSpec) {
	if !s.Resident {
		m.artifacts.unpin(s.Artifact)
	}
}

// chooseExecutable sets the executable of a job whose client named none. It chooses the
// executable of this process or, if no task manager has the platform for it, the executable
// that all task managers run.
func (m *Manager) chooseExecutable(s *wire.JobSpec) error {
	nodes := m.presentTaskManagers()
	if m.own.Hash != "" && (len(nodes) == 0 || slices.ContainsFunc(nodes, func(n wire.TaskManagerInfo) bool { return n.Platform == m.own.Platform })) {
		s.Artifact, s.Platform, s.Build = m.own.Hash, m.own.Platform, m.config.Build
		return nil
	}
	if len(nodes) == 0 || slices.ContainsFunc(nodes, func(n wire.TaskManagerInfo) bool { return n.Executable != nodes[0].Executable }) {
		return wire.Error(codes.FailedPrecondition, "the submission names no executable, the job manager's own (%s) runs on no task manager, and the task managers run several builds (%s): upgrade them to one, or submit the job with the superstep command",
			m.config.Build, builds(nodes))
	}
	s.Artifact, s.Platform, s.Build, s.Resident = nodes[0].Executable, nodes[0].Platform, nodes[0].Build, true
	return nil
}

// refuseForeign returns an error that says why this cluster does not run a job's executable,
// and which executables it runs.
func (m *Manager) refuseForeign(s *wire.JobSpec) error {
	text := fmt.Sprintf("this job manager takes no uploads: it runs built-in jobs only, such as superstep run kmeans, and those by a build that it or its task managers have. This program's is %s, the job manager's %s",
		build(s.Build, s.Artifact), build(m.config.Build, m.own.Hash))
	if nodes := m.presentTaskManagers(); len(nodes) > 0 {
		text += ", those of task managers are " + builds(nodes)
	}
	return wire.Error(codes.FailedPrecondition, "%s: run the job with one of these, or upgrade them to this program's", text)
}

// build returns, as text, a version and the first digits of the executable's hash.
func build(version, hash string) string {
	if version == "" {
		version = "of unknown version"
	}
	return fmt.Sprintf("%s, executable %s", version, programs.Short(hash))
}

// builds returns text that lists the builds that task managers run, each with the name of one
// task manager.
func builds(nodes []wire.TaskManagerInfo) string {
	var all []string
	seen := map[string]bool{}
	for _, n := range nodes {
		if !seen[n.Executable] {
			seen[n.Executable] = true
			all = append(all, fmt.Sprintf("%s (on %s)", build(n.Build, n.Executable), n.Name))
		}
	}
	return humanize.List(all, "; ", 4)
}

// presentTaskManagers returns the task managers except those that are lost or have left the
// cluster.
func (m *Manager) presentTaskManagers() []wire.TaskManagerInfo {
	reply, err := m.TaskManagers(context.Background(), &wire.TaskManagersRequest{})
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(reply.TaskManagers, func(n wire.TaskManagerInfo) bool {
		return n.State == core.TaskManagerLost.String() || n.State == core.TaskManagerLeft.String() || n.State == wire.TaskManagerAbsent
	})
}
