// Pause waits for a signal to end: the sandbox of every pod, and the only program of some.
// `pause HOST:PORT` first tries whether anybody answers there.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if len(os.Args) > 1 {
		connection, err := net.DialTimeout("tcp", os.Args[1], 10*time.Second)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("reached", connection.RemoteAddr())
		_ = connection.Close()
	}
	<-signals
}
