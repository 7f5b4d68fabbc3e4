package embedded

import (
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
)

// clusterName is stored with every namespace and must never change.
const clusterName = "active"

const (
	databaseFile    = "temporal.db"
	mainStore       = "main"
	visibilityStore = "visibility"
)

// stores are the databases of a server.
type stores struct {
	main, visibility *config.SQL
	// shards are fixed for the life of a database.
	shards int32
}

func (o Options) stores() stores {
	if p := o.postgres; p != nil {
		return stores{p.sql(p.name), p.sql(p.name + visibilitySuffix), postgresShards}
	}
	file := sqlConfig(o.DataDir)
	return stores{file, file, 1}
}

// sqlConfig opens the database of a data folder. One connection (the default): several are slower on SQLite and meet
// "database is locked".
func sqlConfig(dataDir string) *config.SQL {
	return &config.SQL{
		PluginName: sqlite.PluginName,
		// The plugin puts the name into a file: URI as it is.
		DatabaseName: (&url.URL{Path: filepath.Join(dataDir, databaseFile)}).EscapedPath(),
		ConnectAttributes: map[string]string{
			"mode":         "rw",
			"journal_mode": "wal",
			// FULL: a commit that was answered survives a power cut, not only a killed process.
			"synchronous": "full",
			// Milliseconds; a backup by another process may hold the database for a moment.
			"busy_timeout": "10000",
		},
	}
}

// archiveURI is where the server copies closed workflows: kind is "history" or "visibility".
func archiveURI(dataDir, kind string) string {
	return (&url.URL{Scheme: "file", Path: filepath.Join(dataDir, "archive", kind)}).String()
}

func serverConfig(o Options, p ports) *config.Config {
	frontend := hostPort(o.Host, p.frontend)
	service := func(port int) config.Service {
		return config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: o.Host}}
	}
	stores := o.stores()
	files := &config.FilestoreArchiver{FileMode: "0600", DirMode: "0700"}
	return &config.Config{
		Persistence: config.Persistence{
			DefaultStore:     mainStore,
			VisibilityStore:  visibilityStore,
			NumHistoryShards: stores.shards,
			DataStores:       map[string]config.DataStore{mainStore: {SQL: stores.main}, visibilityStore: {SQL: stores.visibility}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{
			string(primitives.FrontendService): service(p.frontend),
			string(primitives.HistoryService):  service(p.history),
			string(primitives.MatchingService): service(p.matching),
			string(primitives.WorkerService):   service(p.worker),
		},
		PublicClient: config.PublicClient{HostPort: frontend},
		Archival: config.Archival{
			History: config.HistoryArchival{
				State: config.ArchivalEnabled, EnableRead: true,
				Provider: &config.HistoryArchiverProvider{Filestore: files},
			},
			Visibility: config.VisibilityArchival{
				State: config.ArchivalEnabled, EnableRead: true,
				Provider: &config.VisibilityArchiverProvider{Filestore: files},
			},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: config.ArchivalEnabled, URI: archiveURI(o.DataDir, "history")},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: config.ArchivalEnabled, URI: archiveURI(o.DataDir, "visibility")},
		}},
	}
}

// staticHosts tells the services where the others are, so that no membership protocol has to run.
func staticHosts(host string, p ports) map[primitives.ServiceName]static.Hosts {
	return map[primitives.ServiceName]static.Hosts{
		primitives.FrontendService: static.SingleLocalHost(hostPort(host, p.frontend)),
		primitives.HistoryService:  static.SingleLocalHost(hostPort(host, p.history)),
		primitives.MatchingService: static.SingleLocalHost(hostPort(host, p.matching)),
		primitives.WorkerService:   static.SingleLocalHost(hostPort(host, p.worker)),
	}
}

func hostPort(host string, port int) string {
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// dynamicConfig is every setting that differs from the server's defaults, which are made for clusters.
func dynamicConfig() dynamicconfig.StaticClient {
	return dynamicconfig.StaticClient{
		// The queues between history and matching look for work at most 20 times a second by default, so that an idle
		// turn of two activities takes 100 ms; with these it takes about 15.
		dynamicconfig.TransferProcessorMaxPollRPS.Key(): 2000,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():    2000,
		// Lists (lineage, the inbox) show a change as soon as it is committed.
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): 2000,
		// With one host more partitions of a task queue (default 4) only add hops and leave pollers on empty ones.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
		// Room for 10,000 open runs in memory; the default (128,000) lets closed ones fill a small machine.
		dynamicconfig.HistoryCacheHostLevelMaxSize.Key(): 16384,
		// Every start of a run lists its predecessors; the default is 10 lists a second.
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 1000,
		// The default delays the archiving of a closed workflow by up to 5 minutes to spread a cluster's load. Here a
		// history is copied at once, also for the case that the database is lost.
		dynamicconfig.ArchivalProcessorArchiveDelay.Key(): time.Second,
		// Nothing leaves the machine.
		dynamicconfig.EnableServerVersionCheck.Key(): false,
	}
}
