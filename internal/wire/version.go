package wire

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"google.golang.org/grpc/codes"
)

// module is the path of Superstep's module. In a program, it is the main module or a
// dependency.
const module = "github.com/superstep-ml/superstep"

// CheckVersion compares theirs, the protocol version of the other side, with Version. If they
// differ, it returns an error that says which side to upgrade. who names the other side, such
// as "the job manager at localhost:6123".
func CheckVersion(theirs int, who string) error {
	return CheckVersions(theirs, who, "this program")
}

// CheckVersions does the same as CheckVersion, but its error is for users of the other side, so
// us must name this side:
//
//	wire.CheckVersions(req.Version, "the client", "the job manager")
func CheckVersions(theirs int, who, us string) error {
	older := who
	switch {
	case theirs == Version:
		return nil
	case theirs > Version:
		older = us
	}
	return Error(codes.FailedPrecondition, "%s speaks version %d of the protocol and %s version %d: upgrade %s", who, theirs, us, Version, older)
}

// Build returns the version of Superstep in this binary, for users, such as "v0.3.1
// (linux/amd64, go1.26.0)". The version of a build from a checkout contains its commit.
func Build() string {
	info, _ := debug.ReadBuildInfo()
	return describe(info, Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}, runtime.Version())
}

// BuildOf returns the same text as Build, but for another binary. info is the build information
// that the toolchain has written into that binary.
func BuildOf(info *debug.BuildInfo, on Platform) string { return describe(info, on, info.GoVersion) }

func describe(info *debug.BuildInfo, on Platform, toolchain string) string {
	return fmt.Sprintf("%s (%s, %s)", version(info), on, strings.TrimPrefix(toolchain, "devel "))
}

// version returns the version of Superstep from the build information of a binary.
func version(info *debug.BuildInfo) string {
	if info == nil {
		return "devel"
	}
	if info.Main.Path != module {
		for _, dep := range info.Deps {
			if dep.Path == module && dep.Replace == nil {
				return dep.Version
			}
		}
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	commit, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = "-" + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+modified"
		}
	}
	return "devel" + commit + modified
}
