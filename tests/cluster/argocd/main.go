// Argo CD as processes of the tests: `argocd COMPONENT FLAGS`, and the Redis that they share.
package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"
	controller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	reposerver "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"
	server "github.com/argoproj/argo-cd/v3/cmd/argocd-server/commands"
	"github.com/spf13/cobra"
)

// Constructing a command takes hold of what the others would: only the one asked for is.
var components = map[string]func() *cobra.Command{
	"application-controller": controller.NewCommand,
	"repo-server":            reposerver.NewCommand,
	"server":                 server.NewCommand,
	"redis":                  newRedis,
}

func main() {
	if os.Getenv("KUBEBOX_ENDS_WITH_STDIN") != "" {
		go endWithStdin()
	}
	if len(os.Args) < 2 || components[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: argocd application-controller|repo-server|server|redis FLAGS")
		os.Exit(2)
	}
	command := components[os.Args[1]]()
	command.SetArgs(os.Args[2:])
	if err := command.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// It dies with the process that holds the other end of its input, however that one ends.
func endWithStdin() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// Redis as Argo CD's own tests have it: nobody must install it, and it ends as the others do.
func newRedis() *cobra.Command {
	var address string
	command := &cobra.Command{Use: "redis", RunE: func(*cobra.Command, []string) error {
		redis := miniredis.NewMiniRedis()
		if err := redis.StartAddr(address); err != nil {
			return err
		}
		for { // its clock stands still otherwise, and nothing kept there would ever expire
			time.Sleep(time.Second)
			redis.FastForward(time.Second)
		}
	}}
	command.Flags().StringVar(&address, "address", "127.0.0.1:6379", "where it listens")
	return command
}
