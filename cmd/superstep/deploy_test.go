package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/superstep-ml/superstep/cmd/internal/settings"
)

// accepts requires that the parser of the binary accepts the command line in words. It does not
// run the command.
func accepts(t *testing.T, words []string) {
	t.Helper()
	k, err := kong.New(new(cli), kong.Vars{"state": "/state"}, kong.Exit(func(int) {}), kong.Writers(io.Discard, io.Discard))
	require.NoError(t, err)
	_, err = k.Parse(words)
	require.NoError(t, err, "%q", words)
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	require.NoError(t, err)
	return string(data)
}

// TestUnits requires that the systemd units have only sections and keys that systemd knows, and
// that each unit has one command line, which the binary accepts.
func TestUnits(t *testing.T) {
	keys := map[string][]string{
		"Unit":    {"Description", "Documentation", "After", "Wants"},
		"Service": {"User", "Group", "StateDirectory", "RuntimeDirectory", "RuntimeDirectoryMode", "EnvironmentFile", "ExecStart", "Restart", "RestartSec", "TimeoutStopSec", "KillMode", "OOMPolicy", "NoNewPrivileges", "ProtectSystem", "ReadWritePaths", "ProtectHome", "PrivateTmp", "LimitNOFILE"},
		"Install": {"WantedBy"},
	}
	units, err := filepath.Glob("../../deploy/systemd/*.service")
	require.NoError(t, err)
	require.Len(t, units, 2)
	require.Contains(t, read(t, "deploy", "systemd", "superstep-taskmanager.service"), "\nOOMPolicy=continue\n", "without OOMPolicy=continue, systemd stops the task manager when the kernel kills a worker that is out of memory")
	require.Contains(t, read(t, "deploy", "systemd", "superstep-taskmanager.service"), "\nKillMode=mixed\n", "without KillMode=mixed, systemd ends the workers at the same time as it tells the task manager to hand its jobs over")
	for _, path := range units {
		section, started := "", 0
		for _, line := range strings.Split(read(t, "deploy", "systemd", filepath.Base(path)), "\n") {
			if name, ok := strings.CutPrefix(line, "["); ok {
				section = strings.TrimSuffix(name, "]")
				require.Contains(t, keys, section, path)
				continue
			}
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			key, value, ok := strings.Cut(line, "=")
			require.True(t, ok, "%s: %s", path, line)
			require.Contains(t, keys[section], key, path)
			if key == "ExecStart" {
				started++
				words := strings.Fields(value)
				require.Equal(t, "/usr/local/bin/superstep", words[0])
				accepts(t, words[1:])
			}
		}
		require.Equal(t, 1, started, path)
	}
}

// port is a port of a container.
type port struct {
	Name          string
	ContainerPort int `yaml:"containerPort"`
}

// probe is a health check by the kubelet.
type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

// object is a Kubernetes object, with the fields that the tests read.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Selector    map[string]any
		ServiceName string `yaml:"serviceName"`
		Ports       []struct {
			Port       int
			TargetPort string `yaml:"targetPort"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				SecurityContext map[string]any `yaml:"securityContext"`
				Containers      []struct {
					Args           []string
					Ports          []port
					ReadinessProbe probe `yaml:"readinessProbe"`
					LivenessProbe  probe `yaml:"livenessProbe"`
					VolumeMounts   []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
						SubPath   string `yaml:"subPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name   string
					Secret struct {
						SecretName string `yaml:"secretName"`
						Items      []struct{ Key string }
					}
				}
			}
		}
		Resources            struct{ Requests struct{ Storage string } } // field of a PersistentVolumeClaim
		VolumeClaimTemplates []struct {
			Metadata struct{ Name string }
			Spec     struct {
				Resources struct{ Requests struct{ Storage string } }
			}
		} `yaml:"volumeClaimTemplates"`
	}
	StringData map[string]string `yaml:"stringData"`
}

func objects(t *testing.T, file string) []object {
	t.Helper()
	var all []object
	d := yaml.NewDecoder(strings.NewReader(read(t, "deploy", "kubernetes", file)))
	for {
		var o object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err, file)
		all = append(all, o)
	}
}

// TestManifests requires that the Kubernetes manifests are consistent: the binary accepts the
// arguments, services refer to ports of containers, mounted volumes exist, and secrets have the
// files that arguments name.
func TestManifests(t *testing.T) {
	secrets := map[string]object{}
	for _, o := range objects(t, "secrets.yaml") {
		secrets[o.Metadata.Name] = o
	}
	kinds := map[string]int{}
	named := 0 // number of arguments that name files of secrets
	var probed []string
	all := objects(t, "superstep.yaml")
	for _, o := range all {
		kinds[o.Kind]++
		if c := o.Spec.Template.Spec.SecurityContext; c["fsGroup"] != nil {
			require.Equal(t, "OnRootMismatch", c["fsGroupChangePolicy"], "%s: the policy must be set, since without it every mount makes all files of the volume accessible to the group", o.Metadata.Name)
		}
		for _, c := range o.Spec.Template.Spec.Containers {
			accepts(t, c.Args)
			secretOf, items := map[string]string{}, map[string]int{}
			var volumes []string
			for _, v := range o.Spec.Template.Spec.Volumes {
				volumes = append(volumes, v.Name)
				secretOf[v.Name] = v.Secret.SecretName
				items[v.Name] = len(v.Secret.Items)
				for _, i := range v.Secret.Items {
					// User code can read mounted files, so only files that arguments name may
					// be mounted.
					require.True(t, slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasSuffix(arg, "/"+i.Key) }), i.Key)
				}
			}
			for _, p := range []probe{c.ReadinessProbe, c.LivenessProbe} {
				if p.HTTPGet.Port == "" {
					continue
				}
				probed = append(probed, p.HTTPGet.Path)
				i := slices.IndexFunc(c.Ports, func(o port) bool { return o.Name == p.HTTPGet.Port })
				require.GreaterOrEqual(t, i, 0, p.HTTPGet.Port)
				require.Contains(t, c.Args, fmt.Sprintf("--probes=0.0.0.0:%d", c.Ports[i].ContainerPort), "the kubelet must probe the port of --probes: it has no client certificate for the other ports")
			}
			for _, v := range o.Spec.VolumeClaimTemplates {
				volumes = append(volumes, v.Metadata.Name)
			}
			require.Equal(t, 3, items["tls"])
			for _, m := range c.VolumeMounts {
				require.Contains(t, volumes, m.Name)
				for _, arg := range c.Args {
					_, path, _ := strings.Cut(arg, "=")
					file, ok := strings.CutPrefix(path, m.MountPath+"/")
					if m.SubPath != "" {
						file, ok = m.SubPath, path == m.MountPath
					}
					if ok && secretOf[m.Name] != "" {
						require.Contains(t, secrets[secretOf[m.Name]].StringData, file, arg)
						named++
					}
				}
			}
		}
		if o.Kind == "Service" {
			i := slices.IndexFunc(all, func(p object) bool {
				return p.Kind != "Service" && p.Spec.Template.Metadata.Labels["component"] == o.Spec.Selector["component"]
			})
			require.GreaterOrEqual(t, i, 0, "an object must have the pods of service %s", o.Metadata.Name)
			for _, p := range o.Spec.Ports {
				require.True(t, slices.ContainsFunc(all[i].Spec.Template.Spec.Containers[0].Ports, func(c port) bool { return c.Name == p.TargetPort }))
			}
		}
	}
	require.Equal(t, 8, named)
	require.Equal(t, []string{"/readyz", "/healthz"}, probed)
	require.Equal(t, map[string]int{"Service": 2, "PersistentVolumeClaim": 1, "Deployment": 1, "StatefulSet": 1, "NetworkPolicy": 2}, kinds)
}

// TestVolumesHoldWhatIsKept requires that each volume is larger than the sum of three sizes:
// the files that its manager keeps, the results of a running job, and the free space that the
// manager requires.
func TestVolumesHoldWhatIsKept(t *testing.T) {
	held := map[string]settings.Size{}
	for _, o := range objects(t, "superstep.yaml") {
		claims := o.Spec.VolumeClaimTemplates
		size := func(text string) (n settings.Size) {
			require.NoError(t, n.UnmarshalText([]byte(text+"B")))
			return n
		}
		switch {
		case o.Kind == "PersistentVolumeClaim":
			held[o.Metadata.Name] = size(o.Spec.Resources.Requests.Storage)
		case len(claims) > 0:
			held[o.Metadata.Name] = size(claims[0].Spec.Resources.Requests.Storage)
		}
	}
	for _, o := range objects(t, "superstep.yaml") {
		for _, c := range o.Spec.Template.Spec.Containers {
			parsed := new(cli)
			k, err := kong.New(parsed, kong.Vars{"state": "/state"})
			require.NoError(t, err)
			_, err = k.Parse(c.Args)
			require.NoError(t, err)
			kept := parsed.TaskManager.Cache + parsed.TaskManager.MinFree
			if o.Metadata.Name == "superstep-jobmanager" {
				j := parsed.JobManager
				kept = j.Cache + j.KeepBytes + j.MaxResult + j.MinFree
			}
			require.Less(t, kept, held[o.Metadata.Name], "the volume of %s must be larger than the files that the flags allow, which are %s", o.Metadata.Name, kept)
		}
	}
}

// TestImage reads the Dockerfile and does not build the image. It requires that the entry point
// is the binary that the Dockerfile builds without cgo and with the Go version of go.mod, and
// that the image does not run as root.
func TestImage(t *testing.T) {
	text := read(t, "deploy", "Dockerfile")
	require.Contains(t, text, "CGO_ENABLED=0")
	require.Contains(t, text, "-o /out/superstep ./cmd/superstep")
	require.Contains(t, text, "COPY --from=build /out/superstep /superstep")
	require.Contains(t, text, `ENTRYPOINT ["/superstep"]`)
	require.Regexp(t, `(?m)^FROM scratch$`, text)
	require.NotRegexp(t, `(?m)^USER (root|0)`, text)
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))
	require.Contains(t, text, "golang:"+version[1]+" ")
}

// TestDeploymentPage requires that the binary accepts every superstep command line in
// docs/deploy.md, and that the page mentions the files in deploy.
func TestDeploymentPage(t *testing.T) {
	page := read(t, "docs", "deploy.md")
	lines := 0
	for _, m := range regexp.MustCompile("(?m)(?:^    |`)superstep ([a-z][^`\n]*?)(?: &)?(?:`|$)").FindAllStringSubmatch(page, -1) {
		words := strings.Fields(strings.ReplaceAll(m[1], "'", ""))
		if i := slices.Index(words, ">"); i >= 0 {
			words = words[:i]
		}
		accepts(t, words)
		lines++
	}
	require.GreaterOrEqual(t, lines, 8)
	for _, name := range []string{"deploy/Dockerfile", "deploy/systemd", "deploy/kubernetes/superstep.yaml", "secrets.yaml"} {
		require.Contains(t, page, name)
	}
}
