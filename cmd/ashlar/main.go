// Command ashlar is a JSON-RPC blockchain data service.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"ashlar/app"
	"ashlar/app/config"
	"ashlar/family"

	gethlog "github.com/ethereum/go-ethereum/log"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes, which scripts rely on.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := stoppable(stopSignals()...)
	code := run(ctx)
	stop()
	os.Exit(code)
}

// stoppable returns a context that is canceled by the first of the given signals. For
// SIGTERM the cause is app.ErrTerminated.
func stoppable(signals ...os.Signal) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	received := make(chan os.Signal, 1)
	signal.Notify(received, signals...)
	go func() {
		select {
		case s := <-received:
			if s == syscall.SIGTERM {
				cancel(app.ErrTerminated)
			} else {
				cancel(context.Canceled)
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(received)
		cancel(context.Canceled)
	}
}

// stopSignals returns the signals that stop a command gracefully. Closing a terminal sends
// SIGHUP, so it is one of them, except under nohup; serve uses it to reload instead.
func stopSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// errUsage marks errors in the command line.
var errUsage = errors.New("usage")

func run(ctx context.Context) int {
	gethlog.SetDefault(gethlog.NewLogger(slog.DiscardHandler))     // the library also returns its errors
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil))) // must follow the line above, which also sets it
	root := commands()
	ran, err := root.ExecuteContextC(ctx)
	if wrong := new(family.UsageError); errors.As(err, &wrong) && !errors.Is(err, errUsage) {
		err = fmt.Errorf("%w: %w", errUsage, err)
	}
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errUsage):
		fmt.Fprintln(stderr(), "ashlar:", err)
		return exitUsage
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "ashlar: interrupted;", afterInterruption(ran))
		return exitFailed
	default:
		fmt.Fprintln(stderr(), "ashlar:", err)
		return exitFailed
	}
}

// onInterruption names the annotation of a command that says what its interruption leaves.
const onInterruption = "interrupted"

// leaves is the annotation of a command whose interruption leaves something.
func leaves(what string) map[string]string { return map[string]string{onInterruption: what} }

// afterInterruption says what the interruption of a command leaves.
func afterInterruption(c *cobra.Command) string {
	return cmp.Or(c.Annotations[onInterruption], "acknowledged changes are kept")
}

// forPackages are commands that only builds with certain tags have.
var forPackages []func() *cobra.Command

func commands() *cobra.Command {
	root := &cobra.Command{
		Use:           "ashlar",
		Short:         "A JSON-RPC blockchain data service",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       app.ClientVersion(),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w: %w%s; see %s --help", errUsage, flagError(err), meantFlag(c, err), c.CommandPath())
	})
	root.AddCommand(
		demoCommand(), importCommand(), exportCommand(), serveCommand(), accountCommand(), teamCommand(), keyCommand(), statusCommand(), verifyCommand(), rewindCommand(), pruneCommand(), joinCommand(), copyCommand(), networkCommand(),
		backupCommand(), restoreCommand(), snapshotCommand(), configCommand(), versionCommand(), healthCommand(), workerCommand(),
	)
	for _, command := range forPackages {
		root.AddCommand(command())
	}
	root.Args = cobra.NoArgs
	logFlags(root)
	usageErrors(root)
	return root
}

// flagError describes the expected value of an invalid flag. The library's own error names
// the Go function that failed to parse it.
func flagError(err error) error {
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return err
	}
	var expected string
	switch wrong.GetFlag().Value.Type() {
	case "uint32":
		expected = fmt.Sprint("a whole number from 0 to ", uint32(math.MaxUint32))
	case "uint64":
		expected = fmt.Sprint("a whole number from 0 to ", uint64(math.MaxUint64))
	case "int":
		expected = "a whole number"
	case "duration":
		expected = "a time such as 90s, 30m or 720h"
	case "bool":
		expected = "true or false"
	default:
		chosen, ok := wrong.GetFlag().Value.(interface{ expected() string })
		if !ok {
			return err
		}
		expected = chosen.expected()
	}
	return fmt.Errorf("--%s %q: expected %s", wrong.GetFlag().Name, wrong.GetValue(), expected)
}

// usageErrors reports wrong arguments, and a command group without a command, as usage
// errors.
func usageErrors(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := checkArgs(check, c, args); err != nil {
				return fmt.Errorf("%w: %w%s; see %s --help", errUsage, err, meantCommand(c, args), c.CommandPath())
			}
			return nil
		}
	}
	if c.HasSubCommands() && c.RunE == nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%w: unknown command %q for %q%s; see %s --help", errUsage, args[0], c.CommandPath(), meantCommand(c, args), c.CommandPath())
			}
			return fmt.Errorf("%w: %s requires a command; see %s --help", errUsage, c.CommandPath(), c.CommandPath())
		}
	}
	for _, sub := range c.Commands() {
		usageErrors(sub)
	}
}

// checkArgs is check with errors that name the argument. The library's own count the arguments,
// or call those of a command without any unknown commands.
func checkArgs(check cobra.PositionalArgs, c *cobra.Command, args []string) error {
	err := check(c, args)
	if err == nil || c.HasSubCommands() {
		return err
	}
	for n := len(args) - 1; n >= 0; n-- {
		if check(c, args[:n]) == nil {
			return fmt.Errorf("unexpected argument %q", args[n])
		}
	}
	if needed := operands(c); len(args) < len(needed) {
		return fmt.Errorf("missing %s", strings.Join(needed[len(args):], " and "))
	}
	return err
}

// operands returns the arguments that a command needs and that are not flags, as its usage
// names them: EMAIL for "create --data DIR EMAIL [--role operator]".
func operands(c *cobra.Command) (needed []string) {
	_, usage, _ := strings.Cut(c.Use, " ")
	var optional, value bool
	for _, word := range strings.Fields(usage) {
		name, flag := strings.CutPrefix(word, "--")
		optional = optional || strings.HasPrefix(word, "[")
		if !optional && !flag && !value {
			needed = append(needed, word)
		}
		if strings.Contains(word, "]") {
			optional = false
		}
		f := c.Flag(name)
		value = flag && f != nil && f.NoOptDefVal == ""
	}
	return needed
}

// exclusive makes it a usage error to give both flags. The library's own check comes after
// that of the arguments, so usageErrors would not mark its error; shells complete by it.
func exclusive(c *cobra.Command, one, other string) {
	c.MarkFlagsMutuallyExclusive(one, other)
	check := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed(one) && c.Flags().Changed(other) {
			return fmt.Errorf("--%s and --%s exclude each other", one, other)
		}
		return check(c, args)
	}
}

// need returns an error if a required flag is missing.
func need(c *cobra.Command, flag, value string) error {
	if value == "" {
		return fmt.Errorf("%w: missing --%s; see %s --help", errUsage, flag, c.CommandPath())
	}
	return nil
}

// checkListen returns a usage error if a flag's value, unless it is empty, is not the address of a listener.
func checkListen(c *cobra.Command, flag, address string) error {
	if address == "" {
		return nil
	}
	if err := config.CheckAddress(address); err != nil {
		return fmt.Errorf("%w: --%s: %w; see %s --help", errUsage, flag, err, c.CommandPath())
	}
	return nil
}

// needStores returns a usage error if a command was not told where the stores are.
func needStores(c *cobra.Command, data, config string) error {
	if data == "" && config == "" {
		return fmt.Errorf("%w: missing --data or --config; see %s --help", errUsage, c.CommandPath())
	}
	return nil
}

// configUsage describes --config of commands that only need to know where the stores are.
const configUsage = "configuration file that says where the stores are, such as in a cluster"
