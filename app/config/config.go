// Package config defines the configuration of the service: its entries, their defaults, and
// how ashlar.yaml is read and checked.
package config

import (
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/feed"
	"ashlar/gateway"
	"ashlar/jsonrpc"
)

// Bytes is a number of bytes, written plainly or with a unit: 512KiB, 64MiB, 2GiB.
type Bytes = family.Bytes

// Config is ashlar.yaml. docs/configuration.md tells what each entry means.
type Config struct {
	Data      string             `yaml:"data"`      // the data directory
	Store     Store              `yaml:"store"`     // where the stores are, if not in the data directory
	Role      Role               `yaml:"role"`      // in a cluster
	Listen    string             `yaml:"listen"`    // address of the public listener
	Operator  string             `yaml:"operator"`  // address of the operator's listener; empty: none
	Cache     Bytes              `yaml:"cache"`     // for stored rows, shared by all networks
	LameDuck  time.Duration      `yaml:"lame_duck"` // for which requests are answered after SIGTERM while /readyz says no
	Drain     time.Duration      `yaml:"drain"`     // for requests under way when the server stops
	Hosts     []string           `yaml:"hosts"`     // patterns such as *.example.org
	Networks  map[string]Network `yaml:"networks"`
	Origins   []string           `yaml:"origins"` // whose pages may call; "*" for all
	Proxies   []string           `yaml:"proxies"` // networks of trusted reverse proxies
	TLS       TLS                `yaml:"tls"`
	Limits    Limits             `yaml:"limits"`
	Sockets   Sockets            `yaml:"sockets"`
	Filters   Filters            `yaml:"filters"`
	Accounts  Accounts           `yaml:"accounts"`
	Dashboard Dashboard          `yaml:"dashboard"`
	Credits   map[string]int     `yaml:"credits"` // by method, over the built-in table
	Log       Log                `yaml:"log"`
	Traces    Traces             `yaml:"traces"`
}

// Log says which requests are logged.
type Log struct {
	Requests bool          `yaml:"requests"` // all
	Slow     time.Duration `yaml:"slow"`     // those that take as long, as warnings; 0: none
}

// Traces says where traces of requests are sent.
type Traces struct {
	Endpoint string  `yaml:"endpoint"` // URL of an OTLP collector; empty: nowhere
	Share    float64 `yaml:"share"`    // of the requests
}

// Store is where the stores are, if not in the data directory.
type Store struct {
	Cassandra store.Cassandra `yaml:"cassandra"`
	Cache     RowCache        `yaml:"cache"`
}

// RowCache is where a reader of a cluster keeps rows besides its memory.
type RowCache struct {
	Dir  string `yaml:"dir"`  // empty: nowhere
	Size Bytes  `yaml:"size"` // of each network
}

// Role is what a process does in a cluster.
type Role string

// Roles.
const (
	Writer  Role = "writer"  // follows the networks and writes their blocks; also answers
	Reader  Role = "reader"  // answers from what the writer has written
	Standby Role = "standby" // waits for the writer to fail, and then is the writer
)

// TLS is how the public listener is encrypted: by files or by ACME, or not at all.
type TLS struct {
	Certificate string `yaml:"certificate"` // PEM file
	Key         string `yaml:"key"`         // PEM file
	ACME        ACME   `yaml:"acme"`
}

// ACME is where certificates are got.
type ACME struct {
	Domains   []string `yaml:"domains"` // none: ACME is not used
	Email     string   `yaml:"email"`
	Directory string   `yaml:"directory"` // the authority's URL; empty: Let's Encrypt
}

// Limits bound what requests may ask for, one by one and together.
type Limits struct {
	Body        Bytes         `yaml:"body"`         // of a request
	BatchCalls  int           `yaml:"batch_calls"`  // calls in one batch
	BatchBytes  Bytes         `yaml:"batch_bytes"`  // of the answer to a batch
	AnswerBytes Bytes         `yaml:"answer_bytes"` // of the answer to one call
	Time        time.Duration `yaml:"time"`         // to answer a request

	AddressRate  float64 `yaml:"address_rate"`  // credits a second for each address; 0: no limit
	KeyRate      float64 `yaml:"key_rate"`      // credits a second for each key; 0: no limit
	KeyDaily     uint64  `yaml:"key_daily"`     // credits a day for each key; 0: no limit
	AccountRate  float64 `yaml:"account_rate"`  // credits a second for all keys of an account together; 0: no limit
	AccountDaily uint64  `yaml:"account_daily"` // credits a day for all keys of an account together; 0: no limit
	AddressFails float64 `yaml:"address_fails"` // requests a second without a valid key, for each address; 0: no limit
	See          string  `yaml:"see"`           // where clients are told to read about limits

	LightCalls      int   `yaml:"light_calls"`      // of cheap methods at once; 0: 64 for each processor
	HeavyCalls      int   `yaml:"heavy_calls"`      // of other methods at once; 0: 2 for each processor
	WaitingCalls    int   `yaml:"waiting_calls"`    // that wait for their turn
	Memory          Bytes `yaml:"memory"`           // for bodies and answers
	Connections     int   `yaml:"connections"`      // at once
	ConnectionsEach int   `yaml:"connections_each"` // at once from one address; 0: no limit
}

// Sockets bounds WebSocket connections.
type Sockets struct {
	Open       int           `yaml:"open"`        // at once
	Each       int           `yaml:"each"`        // of one account, or of a key without one, at once
	InFlight   int           `yaml:"in_flight"`   // messages of a connection that are not answered yet
	Streams    int           `yaml:"streams"`     // subscriptions of a connection
	Queue      int           `yaml:"queue"`       // of a connection, messages of its subscriptions
	QueueBytes Bytes         `yaml:"queue_bytes"` // of a connection: of answers, and of messages of subscriptions
	Idle       time.Duration `yaml:"idle"`        // after which a connection is closed
	Ping       time.Duration `yaml:"ping"`        // between signs of life
}

// Filters bounds the filters of a network that clients poll.
type Filters struct {
	Each   int           `yaml:"each"`   // of one account, or of one key without an account
	Unread time.Duration `yaml:"unread"` // after which a filter is gone
	Memory Bytes         `yaml:"memory"` // for all of them, again for blocks, and again for transactions that they have not given
}

// Feed returns the limits as the filters of a network take them.
func (c Filters) Feed() feed.Limits {
	return feed.Limits{PerCaller: c.Each, Unread: c.Unread, Bytes: int(c.Memory)}
}

// Accounts is how people's accounts are looked after.
type Accounts struct {
	Registration account.Registration `yaml:"registration"` // who may make an account
	Keys         int                  `yaml:"keys"`         // of an account at once
	Teams        int                  `yaml:"teams"`        // that a user may own; 0: only operators create teams
	UsageDays    int                  `yaml:"usage_days"`   // for which usage is kept
	Mail         Mail                 `yaml:"mail"`
	OIDC         OIDC                 `yaml:"oidc"`
}

// Service returns the entries as the accounts take them.
func (c Accounts) Service() account.Config {
	return account.Config{Registration: c.Registration, Keys: c.Keys, Teams: c.Teams}
}

// Dashboard is where the dashboard is shown.
type Dashboard struct {
	// Hosts are those at which every path of the public listener that is not JSON-RPC's
	// is the dashboard's; "*" for all, empty: there is no dashboard.
	Hosts []string `yaml:"hosts"`
	// URL is where users reach it, at one of Hosts; empty: not known, see [Config.DashboardURL].
	URL string `yaml:"url"`
	// Status says that everybody can see the status page.
	Status bool `yaml:"status"`
}

// Default is what holds where ashlar.yaml and the command line say nothing.
func Default() Config {
	return Config{
		Store:    Store{Cassandra: store.DefaultCassandra(), Cache: RowCache{Size: 10 << 30}},
		Role:     Writer,
		Listen:   "127.0.0.1:8545",
		Cache:    128 << 20,
		LameDuck: 5 * time.Second,
		Drain:    gateway.DefaultDrainTime,
		Origins:  []string{gateway.AnyOrigin},
		Limits: Limits{
			Body: gateway.DefaultBodyBytes, BatchCalls: jsonrpc.DefaultBatchCalls, BatchBytes: jsonrpc.DefaultBatchBytes,
			AnswerBytes: jsonrpc.DefaultAnswerBytes, Time: gateway.DefaultRequestTime,
			AddressRate: gateway.DefaultAddressRate, KeyRate: gateway.DefaultRate, AccountRate: gateway.DefaultAccountRate, AddressFails: 20,
			WaitingCalls: gateway.DefaultWaiting, Memory: gateway.DefaultMemory, Connections: gateway.DefaultConnections, ConnectionsEach: gateway.DefaultConnectionsEach,
		},
		Sockets: Sockets{
			Open: gateway.DefaultSockets, Each: gateway.DefaultSocketsEach, InFlight: gateway.DefaultSocketInFlight, Streams: gateway.DefaultSocketStreams,
			Queue: gateway.DefaultSocketQueue, QueueBytes: gateway.DefaultSocketBytes,
			Idle: gateway.DefaultSocketIdle, Ping: gateway.DefaultSocketPing,
		},
		Accounts:  Accounts{Registration: account.RegistrationInvited, Keys: account.DefaultKeys, Teams: account.DefaultTeams, UsageDays: usage.DefaultKeep},
		Dashboard: Dashboard{Hosts: []string{"localhost", "127.0.0.1", "[::1]"}},
		Traces:    Traces{Share: 1},
		Filters:   Filters{Each: feed.DefaultFilters, Unread: feed.DefaultFilterUnread, Memory: feed.DefaultFilterBytes},
	}
}
