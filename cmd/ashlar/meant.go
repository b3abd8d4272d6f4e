package main

import (
	"errors"
	"fmt"

	"ashlar/typo"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// meantCommand returns a question with the command that was probably meant by the first
// argument, or "".
func meantCommand(c *cobra.Command, args []string) string {
	if len(args) == 0 {
		return ""
	}
	var names []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return question(typo.Meant(names, args[0]))
}

// meantFlag returns a question with the flag that was probably meant by an unknown one, or "".
func meantFlag(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return ""
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if meant := typo.Meant(names, unknown.GetSpecifiedName()); meant != "" {
		return question("--" + meant)
	}
	return ""
}

func question(meant string) string {
	if meant == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", meant)
}
