package rest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/superstep-ml/superstep/internal/wire"
)

// metrics has the metrics for Prometheus, in a separate registry. The table in doc.go lists
// their names.
type metrics struct {
	registry *prometheus.Registry
	handler  http.Handler
	requests *prometheus.CounterVec   // with labels route, method, code
	seconds  *prometheus.HistogramVec // with label route
}

func newMetrics(s *Server) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "superstep_http_requests_total", Help: "HTTP requests answered, by route, method and status.",
	}, []string{"route", "method", "code"})
	m.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "superstep_http_request_seconds", Help: "Seconds that HTTP requests took, streams excepted.",
		Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30},
	}, []string{"route"})
	streams := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "superstep_http_streams", Help: "Open streams of events and logs.",
	}, func() float64 { return float64(len(s.streams)) })
	m.registry.MustRegister(m.requests, m.seconds, streams, clusterCollector{s.config.Manager},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:      complaints{s},
		ErrorHandling: promhttp.ContinueOnError,
	})
	return m
}

// complaints logs the errors that the Prometheus client library reports.
type complaints struct{ s *Server }

func (c complaints) Println(v ...any) { c.s.log.Error("metrics are incomplete", "error", v) }

func (s *Server) scrape(w http.ResponseWriter, r *http.Request) error {
	s.grant(w)
	s.metrics.handler.ServeHTTP(w, r)
	return nil
}

// observe returns a handler that calls next, and that counts requests and measures their times
// for each route.
func (s *Server) observe(next http.Handler) http.Handler {
	routes := make(map[string]*route)
	for i := range s.routes {
		routes[exact(s.routes[i].path)] = &s.routes[i]
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, seen := time.Now(), &observed{ResponseWriter: w, code: http.StatusOK}
		defer func() { // deferred, so that requests whose connection is aborted are counted too
			name, long := "none", false
			if route := routes[r.Pattern]; route != nil {
				name, long = route.path, route.stream
			}
			s.metrics.requests.WithLabelValues(name, methodLabel(r.Method), strconv.Itoa(seen.code)).Inc()
			if !long {
				s.metrics.seconds.WithLabelValues(name).Observe(time.Since(began).Seconds())
			}
		}()
		next.ServeHTTP(seen, r)
	})
}

// methodLabel returns the label of a method. Unknown methods share one label, so that clients
// cannot create new time series.
func methodLabel(method string) string {
	known := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace}
	if slices.Contains(known, method) {
		return method
	}
	return "other"
}

// observed is an http.ResponseWriter that records the status of the answer.
type observed struct {
	http.ResponseWriter
	code        int
	wroteHeader bool
}

func (o *observed) WriteHeader(code int) {
	if !o.wroteHeader && code >= http.StatusOK {
		o.code, o.wroteHeader = code, true
	}
	o.ResponseWriter.WriteHeader(code)
}

func (o *observed) Write(p []byte) (int, error) {
	o.wroteHeader = true
	return o.ResponseWriter.Write(p)
}

// Unwrap returns the wrapped ResponseWriter, for http.ResponseController.
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// clusterCollector is a prometheus.Collector that reads all statistics of the job manager when
// Prometheus requests them.
type clusterCollector struct{ manager Manager }

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("superstep_"+name, help, labels, nil)
}

var (
	descBuild         = newDesc("build_info", "Always 1; the version of the job manager is a label.", "version")
	descSlots         = newDesc("slots", "Slots of the task managers.")
	descFree          = newDesc("slots_free", "Slots that no job has.")
	descCordonedSlots = newDesc("slots_cordoned", "Slots of cordoned task managers.")
	descJobs          = newDesc("jobs", "Jobs that are kept, by state.", "state")
	descEnded         = newDesc("jobs_ended_total", "Jobs that have ended, by state.", "state")
	descTaskManagers  = newDesc("task_managers", "Task managers, by state.", "state")
	descHeard         = newDesc("heartbeat_age_seconds", "Seconds since the last message of a task manager.", "task_manager", "id")
	descCordoned      = newDesc("task_manager_cordoned", "1 while a task manager is cordoned, so that it gets no new workers, 0 while it is not.", "task_manager", "id")
	descAvoided       = newDesc("task_manager_avoided", "1 while other task managers come first, as workers died on this one again and again, 0 while they do not.", "task_manager", "id")
	descSupersteps    = newDesc("supersteps_total", "Supersteps of all queues of all jobs.")
	descSeconds       = newDesc("superstep_seconds_total", "Seconds that subtask 0 spent in supersteps, by kind of stage: compute or communicate.", "kind")
	descRows          = newDesc("rows_total", "Rows that vertices of all jobs have taken in.")
	descSentRows      = newDesc("exchange_rows_total", "Rows that went over the exchanges of all jobs.")
	descSentBytes     = newDesc("exchange_bytes_total", "Bytes in memory of the rows that went over the exchanges of all jobs.")
	descEdgeRows      = newDesc("job_exchange_rows", "Rows that went over an exchange of a live job, by edge of its plan.", "job", "edge")
	descEdgeBytes     = newDesc("job_exchange_bytes", "Bytes in memory of the rows that went over an exchange of a live job, by edge of its plan.", "job", "edge")
	descResults       = newDesc("result_bytes_total", "Bytes of collected rows and printed text that jobs sent.")
	descArtifacts     = newDesc("artifact_bytes", "Bytes of the executables that are kept.")
	descCache         = newDesc("artifact_limit_bytes", "Bytes that kept executables may take.")
	descDisk          = newDesc("disk_free_bytes", "Bytes that may still be written to the disk of the job manager's work directory.")
	descTakes         = newDesc("takes_jobs", "1 while the job manager takes jobs, 0 while it does not, as on a full disk.")
	descFollowers     = newDesc("followers", "Clients to which jobs are attached.")
)

func (c clusterCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range append([]*prometheus.Desc{descBuild, descSlots, descFree, descCordonedSlots, descJobs, descEnded, descTaskManagers, descHeard, descCordoned, descAvoided, descSupersteps,
		descSeconds, descRows, descSentRows, descSentBytes, descEdgeRows, descEdgeBytes, descResults, descArtifacts, descCache, descDisk, descTakes, descFollowers}, restartDescs...) {
		out <- d
	}
}

func (c clusterCollector) Collect(out chan<- prometheus.Metric) {
	s := c.manager.Stats()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge(descBuild, 1, wire.Build())
	gauge(descSlots, float64(s.Slots))
	gauge(descFree, float64(s.Free))
	gauge(descCordonedSlots, float64(s.Cordoned))
	for _, state := range wire.JobStates() { // including states of no job
		gauge(descJobs, float64(s.Jobs[state]), state.String())
		if state.Ended() {
			counter(descEnded, float64(s.Ended[state]), state.String())
		}
	}
	counter(descSupersteps, float64(s.Supersteps))
	counter(descSeconds, s.Compute, "compute")
	counter(descSeconds, s.Communicate, "communicate")
	counter(descRows, float64(s.Rows))
	counter(descSentRows, float64(s.ExchangeRows))
	counter(descSentBytes, float64(s.ExchangeBytes))
	for _, e := range s.Exchanges {
		gauge(descEdgeRows, float64(e.Rows), string(e.Job), strconv.Itoa(e.Edge))
		gauge(descEdgeBytes, float64(e.Bytes), string(e.Job), strconv.Itoa(e.Edge))
	}
	counter(descResults, float64(s.ResultBytes))
	gauge(descArtifacts, float64(s.ArtifactBytes))
	gauge(descCache, float64(s.ArtifactCache))
	if s.DiskFree >= 0 {
		gauge(descDisk, float64(s.DiskFree))
	}
	gauge(descTakes, truth(s.TakesJobs))
	gauge(descFollowers, float64(s.Followers))
	collectRestarts(&s, gauge, counter)
	collectRecoveries(&s, out)
	collectTaskManagers(s.TaskManagers, gauge)
}

// collectTaskManagers collects the metrics of task managers. It replaces invalid UTF-8 in names
// that task managers have sent, because otherwise Prometheus would refuse all metrics.
func collectTaskManagers(nodes []wire.TaskManagerInfo, gauge func(*prometheus.Desc, float64, ...string)) {
	states, seen := map[string]int{"alive": 0, "silent": 0, "away": 0}, make(map[string]bool)
	absent := make(map[string]bool) // names
	for i := range nodes {
		n := &nodes[i]
		states[strings.ToValidUTF8(n.State, "�")]++
		switch id := clip(n.ID); {
		case n.State == "lost" || n.State == "left": // they send no heartbeats
		case n.State == wire.TaskManagerAbsent && !absent[clip(n.Name)]: // it has no ID
			absent[clip(n.Name)] = true
			gauge(descCordoned, 1, clip(n.Name), "")
		case n.State == wire.TaskManagerAbsent:
		case !seen[id]:
			seen[id] = true
			gauge(descHeard, n.HeardAgo.Seconds(), clip(n.Name), id)
			gauge(descCordoned, truth(n.Cordon != nil), clip(n.Name), id)
			gauge(descAvoided, truth(n.Avoided != nil), clip(n.Name), id)
		}
	}
	for state, count := range states {
		gauge(descTaskManagers, float64(count), state)
	}
}

// truth returns 1 for true and 0 for false.
func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
