package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"ashlar/app"
	"ashlar/app/command"
	"ashlar/family"

	"github.com/spf13/cobra"
)

// clearScreen moves to the top of a terminal and clears it.
const clearScreen = "\x1b[H\x1b[2J"

func statusCommand() *cobra.Command {
	var data, file string
	var asJSON, watch bool
	var interval time.Duration
	c := &cobra.Command{
		Use:   "status --data DIR [--json | --watch [--interval 2s]]",
		Short: "Show what a data directory holds; also works while a server is running",
		Long: `Shows the networks of a data directory, and what keeps a network or the server from
working as it should. If a server has the directory open, the status comes from that server.

Exit codes: 0 all networks could be read, whatever their state is (ashlar health asks whether
a server is ready); 1 some could not; 2 wrong usage.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := needStores(c, data, file); err != nil {
				return err
			}
			if interval < 100*time.Millisecond {
				return fmt.Errorf("%w: --interval %v: expected at least 100ms", errUsage, interval)
			}
			if watch {
				return watchStatus(c.Context(), data, file, interval)
			}
			status, err := command.ReadStatus(c.Context(), data, file)
			if err != nil {
				return err
			}
			if asJSON {
				return errors.Join(printJSON(status), status.Err())
			}
			return errors.Join(printStatus(status, nil), status.Err())
		},
	}
	c.Flags().StringVar(&data, "data", "", "data directory")
	c.Flags().StringVar(&file, "config", "", configUsage)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&watch, "watch", false, "show the status again and again until interrupted, with rates")
	c.Flags().DurationVar(&interval, "interval", 2*time.Second, "time between two times with --watch")
	exclusive(c, "json", "watch")
	return c
}

// earlier is a status with the time when it was read, from which rates are computed.
type earlier struct {
	app.Status
	at time.Time
}

// watchStatus shows the status until ctx is done, which is not an error.
func watchStatus(ctx context.Context, data, file string, interval time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var last *earlier
	for {
		now := time.Now()
		status, err := command.ReadStatus(ctx, data, file)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stdout, "%s%s  every %v\n\n", clearScreen, now.UTC().Format(time.DateTime), interval)
		if err := printStatus(status, last); err != nil {
			return err
		}
		last = &earlier{status, now}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// printStatus prints a status; last is an earlier one, or nil.
func printStatus(status app.Status, last *earlier) error {
	table := newTable("NETWORK\tFAMILY\tCHAIN ID\tHEAD\tHEAD TIME\tAGE\tUPSTREAMS\tDISK")
	for i := range status.Networks {
		n := &status.Networks[i]
		id := cmp.Or(n.Chain, strconv.FormatUint(n.ChainID, 10))
		var of time.Time // zero for blocks without a time, such as mainnet's genesis
		age := "-"
		if n.HeadTime != 0 {
			of = time.Unix(int64(n.HeadTime), 0)
			age = app.Lasting(time.Since(of))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", n.Name, n.Family, id, n.Head, moment(of), age, upstreams(n), diskText(n.DiskBytes))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if p := status.Process; p != nil {
		fmt.Fprintln(stdout(), processText(p, last))
	} else if status.NoServer {
		fmt.Fprintln(stdout(), "no server answers; this is what the stores hold")
	}
	printProblems(status)
	return nil
}

// upstreams returns how many of the nodes of a network are used, and how many have failed.
func upstreams(n *family.Status) string {
	if n.Source == nil {
		return "-"
	}
	used := 0
	for _, u := range n.Source.Upstreams {
		if u.Used {
			used++
		}
	}
	return fmt.Sprintf("%d of %d", used, len(n.Source.Upstreams))
}

// freeText returns free space. Little of it is given in MiB: a server that refuses writes has less than 0.5 GiB.
func freeText(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

// diskText returns what a network takes on the disk; "-" if it is not known, as in a cluster.
func diskText(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}

// processText describes the server's process, with the rates since an earlier status.
func processText(p *app.Process, last *earlier) string {
	text := fmt.Sprintf("server: %s, %d failed, %.0f MiB of memory", family.Counted(p.Calls, "call"), p.Failed, float64(p.MemoryBytes)/(1<<20))
	if p.FreeBytes != nil {
		text += ", " + freeText(*p.FreeBytes) + " free on the disk"
	}
	if last == nil || last.Process == nil || p.Calls < last.Process.Calls {
		return text
	}
	seconds := time.Since(last.at).Seconds()
	return text + fmt.Sprintf("; %.1f calls/s, %.1f failed/s", float64(p.Calls-last.Process.Calls)/seconds, float64(p.Failed-last.Process.Failed)/seconds)
}

// printProblems prints what an operator should know besides the table.
func printProblems(status app.Status) {
	if status.AccountsRefused != "" {
		fmt.Fprintf(stdout(), "accounts and keys cannot be changed: %s\n", status.AccountsRefused)
	}
	if status.AccountsUnread != "" {
		fmt.Fprintf(stdout(), "changes of accounts and keys are not exchanged with other processes: %s\n", status.AccountsUnread)
	}
	if status.AccountsUnsaved != nil {
		fmt.Fprintln(stdout(), status.AccountsUnsaved)
	}
	if status.ScriptsProblem != "" {
		fmt.Fprintf(stdout(), "processes for clients' scripts cannot be started: %s\n", status.ScriptsProblem)
	}
	if status.MailProblem != "" {
		fmt.Fprintf(stdout(), "e-mails to users cannot be sent %s\n", status.MailProblem)
	}
	for _, what := range status.AccountsUnreadable {
		fmt.Fprintf(stdout(), "disabled because it cannot be read: %s\n", what)
	}
	for _, u := range status.Unserved {
		fmt.Fprintln(stdout(), u)
	}
	for _, u := range status.Unreadable {
		fmt.Fprintln(stdout(), u)
	}
	for _, n := range status.Networks {
		if n.FirstState > 0 {
			fmt.Fprintf(stdout(), "%s has blocks from %d on, and the state from %d on\n", n.Name, n.First, n.FirstState)
		}
		if n.FirstProof > 0 {
			fmt.Fprintf(stdout(), "%s has proofs from block %d on\n", n.Name, n.FirstProof)
		}
		if r := n.Retention; r != nil && r.Problem != "" {
			fmt.Fprintf(stdout(), "%s cannot remove old history: %s\n", n.Name, r.Problem)
		}
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
			fmt.Fprintf(stdout(), "%s is %s\n", n.Name, behind(n.Behind(), c))
		}
		if light := n.LightClient; light != nil {
			printLightClient(n.Name, light)
		} else if n.Consensus != nil {
			fmt.Fprintf(stdout(), "%s is driven by a consensus client, %s\n", n.Name, lastHeard(n.Consensus))
		}
	}
}

// behind says how far a network is from the head, and how fast it gets there.
func behind(blocks uint64, c *family.CatchUp) string {
	text := fmt.Sprintf("%s behind; %.0f blocks/s", family.Counted(blocks, "block"), c.Rate)
	if c.Remaining > 0 { // else it is not known
		text += ", " + app.Lasting(time.Duration(c.Remaining)*time.Second) + " remaining"
	}
	return text
}

// printLightClient prints what a network's light client sees, and which nodes it does not use.
func printLightClient(network string, light *family.LightClientStatus) {
	fmt.Fprintf(stdout(), "%s has a light client: head in slot %d, finalized slot %d, present slot %d\n", network, light.Head, light.Finalized, light.Slot)
	if light.PeriodsBehind > 1 {
		fmt.Fprintf(stdout(), "%s: its light client is %d periods of sync committees behind\n", network, light.PeriodsBehind)
	}
	for _, node := range light.Nodes {
		if node.Why != "" {
			fmt.Fprintf(stdout(), "%s: beacon node %s: %s\n", network, node.Name, node.Why)
		}
	}
}

func lastHeard(c *family.ConsensusStatus) string {
	last := max(c.Payload, c.Forkchoice)
	if last == 0 {
		return "which has sent nothing since the start"
	}
	return "last heard " + time.Unix(last, 0).UTC().Format(time.DateTime)
}
