//go:build unix

package taskmanager

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// scripted is a worker that runs the script named by Spec.Args.
type scripted struct {
	in  *wire.Reader[wire.ToWorker]
	out *wire.Writer[wire.FromWorker]
	raw *os.File
	d   *wire.Deployment
}

// workerMain is the main function of the test binary when it runs as a worker.
func workerMain() {
	raw := os.NewFile(wire.WorkerWrites, "reports")
	w := &scripted{
		in:  wire.NewReader[wire.ToWorker](os.NewFile(wire.WorkerReads, "commands")),
		out: wire.NewWriter[wire.FromWorker](raw),
		raw: raw,
	}
	m, err := w.in.Next()
	if err != nil || m.Deployment == nil {
		os.Exit(97)
	}
	w.d = m.Deployment
	name, arg, _ := strings.Cut(string(w.d.Spec.Args), " ")
	run, known := scripts[name]
	if !known {
		fmt.Println("unknown script", name)
		os.Exit(98)
	}
	run(w, arg)
}

func (w *scripted) say(f wire.FromWorker) {
	if err := w.out.Write(&f); err != nil {
		os.Exit(0)
	}
}

func (w *scripted) beat() { w.say(wire.FromWorker{Beat: &wire.Beat{}}) }
func (w *scripted) ready() {
	w.say(wire.FromWorker{Ready: &wire.Ready{Address: "127.0.0.1:1", Fingerprint: "f"}})
}

// beats starts a goroutine that sends heartbeats.
func (w *scripted) beats() {
	go func() {
		for {
			w.beat()
			time.Sleep(20 * time.Millisecond)
		}
	}()
}

// next waits for the next command. At EOF on the pipe the worker exits.
func (w *scripted) next() *wire.ToWorker {
	m, err := w.in.Next()
	if err != nil {
		os.Exit(0)
	}
	return m
}

// followOrders behaves as a normal worker. Between Start and Finished it sends pieces of
// collected rows; collected is the number of pieces.
func (w *scripted) followOrders(collected int) {
	w.beats()
	w.ready()
	for {
		switch m := w.next(); {
		case m.Prepare != nil:
			w.say(wire.FromWorker{Prepared: &wire.Prepared{}})
		case m.Start != nil:
			for i := range collected {
				w.say(wire.FromWorker{Collected: &wire.Collected{Node: 1, Shard: i, Rows: make([]byte, 32<<10)}})
				w.say(wire.FromWorker{Progress: &wire.Progress{Vertices: []wire.VertexProgress{{Rows: int64(i + 1)}}}})
			}
			fmt.Println("ran", m.Start.Addresses)
			w.say(wire.FromWorker{Finished: &wire.Finished{Outcome: []byte("outcome")}})
		case m.Commit != nil:
			w.say(wire.FromWorker{Committed: &wire.Committed{}})
		case m.Cancel != nil:
			w.say(wire.FromWorker{Failed: &wire.Failure{Message: "cancelled: " + m.Cancel.Reason}})
			os.Exit(1)
		case m.Exit != nil:
			os.Exit(0)
		}
	}
}

// started behaves as a normal worker until it has received Start. It is the first part of
// scripts that misbehave while they run.
func (w *scripted) started() {
	w.beats()
	w.ready()
	w.next()
}

var scripts = map[string]func(w *scripted, arg string){
	"obey": func(w *scripted, arg string) {
		n := 0
		fmt.Sscan(arg, &n)
		w.followOrders(n)
	},
	"states": func(w *scripted, _ string) { // says which files are in its directory for states, and adds one
		entries, err := os.ReadDir(w.d.StateDir)
		if err == nil {
			err = os.WriteFile(filepath.Join(w.d.StateDir, fmt.Sprint("of", w.d.Attempt)), nil, 0o600)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		fmt.Printf("directory %t, files %v, error %v;\n", w.d.StateDir != "", names, err)
		w.followOrders(0)
	},
	"say": func(w *scripted, arg string) {
		switch arg {
		case "environ":
			fmt.Println(strings.Join(os.Environ(), "\n"))
			dir, _ := os.Getwd()
			fmt.Println("dir", dir, "procs", runtime.GOMAXPROCS(0))
		case "deployment":
			fmt.Printf("TaskManager:%s Listen:%s Advertise:%s Ports:%s WorkDir:%s\n", w.d.TaskManager, w.d.Listen, w.d.Advertise, w.d.Ports, w.d.WorkDir)
		}
		_, err := os.Stdin.Read(make([]byte, 1))
		fmt.Println("stdin:", err)
		w.followOrders(0)
	},
	"resolve": func(w *scripted, _ string) {
		w.say(wire.FromWorker{Resolved: &wire.Resolved{Graph: []byte("graph")}})
	},
	"fail": func(w *scripted, _ string) {
		w.started()
		fmt.Println("about to fail")
		w.say(wire.FromWorker{Failed: &wire.Failure{Kind: wire.UserFailure, Message: "no such column"}})
		os.Exit(1)
	},
	"panic": func(w *scripted, _ string) {
		w.started()
		fmt.Println("before the panic")
		explode()
	},
	"panic-early": func(w *scripted, _ string) { panic("too early") },
	"exit": func(w *scripted, arg string) {
		w.started()
		code := 0
		fmt.Sscan(arg, &code)
		os.Exit(code)
	},
	"kill-itself": func(w *scripted, _ string) {
		w.started()
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	},
	"stop-itself": func(w *scripted, _ string) {
		w.started()
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		select {}
	},
	"stop-early": func(w *scripted, _ string) {
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		select {}
	},
	"keep": func(w *scripted, arg string) { w.keep(arg) },
	"allocate": func(w *scripted, _ string) {
		w.started()
		const limit = 1 << 30
		if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			os.Exit(96)
		}
		for kept := [][]byte{}; ; {
			kept = append(kept, make([]byte, 64<<20))
		}
	},
	"garbage-out": func(w *scripted, _ string) {
		os.Stdout.Write([]byte("\x00\xff\x1b[2J garbage \xfe\r\n\n"))
		w.followOrders(0)
	},
	"garbage-pipe": func(w *scripted, _ string) {
		w.started()
		w.raw.Write([]byte("this is no frame at all"))
		select {}
	},
	"out-of-turn": func(w *scripted, _ string) {
		w.say(wire.FromWorker{Finished: &wire.Finished{}})
		select {}
	},
	"two-at-once": func(w *scripted, _ string) {
		w.say(wire.FromWorker{Beat: &wire.Beat{}, Prepared: &wire.Prepared{}})
		select {}
	},
	"close-pipe": func(w *scripted, _ string) {
		w.beat()
		w.raw.Close()
		select {}
	},
	"never-ready":  func(w *scripted, _ string) { w.beats(); select {} },
	"never-speaks": func(w *scripted, _ string) { select {} },
	"leave-early":  func(w *scripted, _ string) { fmt.Println("bye"); os.Exit(3) },
	"flood": func(w *scripted, _ string) {
		w.started()
		line := strings.Repeat("x", 99) + "\n"
		for range 20 {
			io.WriteString(os.Stdout, strings.Repeat(line, 1000)) // 100 kB
		}
		io.WriteString(os.Stderr, strings.Repeat("y", 5<<20)+"\n")
		fmt.Println("the last line")
		w.say(wire.FromWorker{Finished: &wire.Finished{}})
		for w.next().Exit == nil {
		}
	},
	"ignore-cancel": func(w *scripted, _ string) { w.beats(); w.ready(); select {} },
	"ignore-exit":   func(w *scripted, _ string) { w.beats(); w.ready(); select {} },
	"fork": func(w *scripted, arg string) {
		self, _ := os.Executable()
		child := exec.Command(self)
		child.Env = []string{roleEnv + "=mute"}
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if arg == "session" {
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		}
		if err := child.Start(); err != nil {
			os.Exit(95)
		}
		fmt.Println("child", child.Process.Pid)
		w.started()
		os.Exit(0)
	},
	"progress": func(w *scripted, _ string) {
		w.started()
		for i := range 5000 {
			w.say(wire.FromWorker{Progress: &wire.Progress{Vertices: []wire.VertexProgress{{Rows: int64(i + 1)}}}})
		}
		w.say(wire.FromWorker{Finished: &wire.Finished{}})
		for w.next().Exit == nil {
		}
	},
}

// keep behaves as a worker that keeps its process: upon Cancel with Keep, and upon Save as if another
// worker were lost. how says what it does while it waits: "" means that it waits for the next
// deployment, which it obeys in the same way.
func (w *scripted) keep(how string) {
	w.beats()
	for w.runAttempt() {
		fmt.Println("keeps its process")
		w.say(wire.FromWorker{Kept: &wire.Kept{}})
		switch how {
		case "stop":
			syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		case "deaf":
			select {}
		case "chatter":
			w.ready()
		}
		switch m := w.next(); {
		case m.Exit != nil:
			os.Exit(0)
		case m.Deployment != nil:
			w.d = m.Deployment
			if how == "die late" {
				os.Exit(3)
			}
		}
	}
	os.Exit(1)
}

// runAttempt obeys the commands of one attempt. It returns whether the worker keeps its process.
func (w *scripted) runAttempt() bool {
	fmt.Println("attempt", w.d.Attempt, "in process", os.Getpid())
	w.ready()
	for {
		switch m := w.next(); {
		case m.Start != nil:
			_, err := os.Stat(w.d.WorkDir)
			fmt.Println("started, directory:", err)
		case m.Save != nil:
			w.say(wire.FromWorker{Failed: &wire.Failure{Kind: wire.PeerFailure, Message: "worker 1 is gone"}})
			return true
		case m.Cancel != nil:
			w.say(wire.FromWorker{Failed: &wire.Failure{Message: "cancelled: " + m.Cancel.Reason}})
			return m.Cancel.Keep
		case m.Exit != nil:
			os.Exit(0)
		}
	}
}

//go:noinline
func explode() { panic(fmt.Errorf("index %d out of range", 7)) }
