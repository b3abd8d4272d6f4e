package main

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"ashlar/app/command"
	"ashlar/app/config"
	"ashlar/family"

	"github.com/spf13/cobra"
)

func serveCommand() *cobra.Command {
	var data, listen, file string
	c := &cobra.Command{
		Use:   "serve --data DIR [--listen ADDRESS] [--config ashlar.yaml]",
		Short: "Serve the networks of a data directory over JSON-RPC",
		Long: `Serves until SIGINT or SIGTERM, and then finishes the requests in progress. SIGHUP reloads
the configuration: hosts, limits and rules apply at once, other entries after a restart.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			load := func() (config.Config, error) {
				loaded := config.Default()
				if file != "" {
					var err error
					if loaded, err = command.LoadConfig(file); err != nil {
						return loaded, err
					}
				}
				loaded.Data, loaded.Listen = cmp.Or(data, loaded.Data), cmp.Or(listen, loaded.Listen)
				if loaded.Store.Cassandra.Used() {
					return loaded, nil
				}
				return loaded, need(c, "data", loaded.Data)
			}
			signal.Reset(syscall.SIGHUP) // otherwise SIGHUP stops the command, see stopSignals
			again := make(chan os.Signal, 1)
			signal.Notify(again, syscall.SIGHUP)
			defer signal.Stop(again)
			return command.Serve(c.Context(), load, again)
		},
	}
	c.Flags().StringVar(&data, "data", "", "data directory; overrides the configuration")
	c.Flags().StringVar(&listen, "listen", "", "address to listen on (default "+config.Default().Listen+")")
	c.Flags().StringVar(&file, "config", "", "configuration file; see docs/configuration.md")
	return c
}

func lastHeard(c *family.ConsensusStatus) string {
	last := max(c.Payload, c.Forkchoice)
	if last == 0 {
		return "never since the start"
	}
	return time.Unix(last, 0).UTC().Format(time.DateTime)
}

func statusCommand() *cobra.Command {
	var data, file string
	var asJSON bool
	c := &cobra.Command{
		Use:   "status --data DIR [--json]",
		Short: "Show what a data directory holds; also works while a server is running",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := needStores(c, data, file); err != nil {
				return err
			}
			status, err := command.ReadStatus(c.Context(), data, file)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(status)
			}
			table := newTable("NETWORK\tFAMILY\tCHAIN ID\tHEAD\tHEAD TIME\tDISK")
			for _, n := range status.Networks {
				id := n.Chain
				if id == "" {
					id = strconv.FormatUint(n.ChainID, 10)
				}
				var of time.Time // zero for blocks without a time, such as mainnet's genesis
				if n.HeadTime != 0 {
					of = time.Unix(int64(n.HeadTime), 0)
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%.1f MiB\n", n.Name, n.Family, id, n.Head, moment(of), float64(n.DiskBytes)/(1<<20))
			}
			if err := table.Flush(); err != nil {
				return err
			}
			if status.AccountsRefused != "" {
				fmt.Fprintf(stdout(), "accounts and keys cannot be changed: %s\n", status.AccountsRefused)
			}
			if status.AccountsUnsaved != nil {
				fmt.Fprintln(stdout(), status.AccountsUnsaved)
			}
			for _, what := range status.AccountsUnreadable {
				fmt.Fprintf(stdout(), "disabled because it cannot be read: %s\n", what)
			}
			for _, n := range status.Networks {
				if n.UnknownFork != nil {
					fmt.Fprintf(stdout(), "%s: %s\n", n.Name, n.UnknownFork.Warning(time.Now()))
				}
				switch {
				case n.NotReady != "":
					fmt.Fprintf(stdout(), "%s is not ready: %s\n", n.Name, n.NotReady)
				case n.Source != nil && n.Source.Problem != "":
					fmt.Fprintf(stdout(), "%s does not follow its source: %s\n", n.Name, n.Source.Problem)
				}
				if c := n.CatchUp; c != nil {
					fmt.Fprintf(stdout(), "%s is %d blocks behind; %.0f blocks/s, %v remaining\n", n.Name, n.Behind(), c.Rate, time.Duration(c.Remaining)*time.Second)
				}
				if n.Consensus != nil {
					fmt.Fprintf(stdout(), "%s is driven by a consensus client, last heard %s\n", n.Name, lastHeard(n.Consensus))
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&data, "data", "", "data directory")
	c.Flags().StringVar(&file, "config", "", configUsage)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
