package proc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestAnOrderThatStandsStillIsGiven: between any two steps of an order, this process may stand still, as it does under a CPU limit. Here
// processes that do nothing but give orders are stopped for 110 ms, again and again.
func TestAnOrderThatStandsStillIsGiven(t *testing.T) {
	const orders = "AZCONC_TEST_ORDERS"
	if os.Getenv(orders) != "" {
		giveOrders(t)
		return
	}
	t.Parallel()
	var ended sync.WaitGroup
	for range 4 {
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), orders+"=1")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out := new(lines)
		out.more.L = &out.mu
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended.Go(func() {
			out.wait(1)
			for range 40 {
				_ = cmd.Process.Signal(syscall.SIGSTOP)
				<-time.After(110 * time.Millisecond)
				_ = cmd.Process.Signal(syscall.SIGCONT)
				<-time.After(5 * time.Millisecond)
			}
			_ = in.Close()
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v: %s", err, &out.text)
			}
		})
	}
	ended.Wait()
}

// giveOrders gives orders and reads them, until stdin ends.
func giveOrders(t *testing.T) {
	orders, r := pipe(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = os.Stdin.Read(make([]byte, 1))
	}()
	fmt.Println("ready")
	for in := bufio.NewReader(orders); ; {
		for range 1000 {
			r.order(order{})
		}
		for range 1000 {
			if _, err := in.ReadBytes('\n'); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-ended:
			return
		default:
		}
	}
}

// TestOrdersThatNobodyReadsEnd: a watchdog that is stopped sees the end of its orders as soon as it goes on.
func TestOrdersThatNobodyReadsEnd(t *testing.T) {
	orders, r := pipe(t)
	for range 1 << 16 {
		r.order(order{})
	}
	for in := bufio.NewReader(orders); ; {
		if _, err := in.ReadBytes('\n'); err != nil {
			return
		}
	}
}

// pipe returns a run that gives orders, and the end of its pipe at which they arrive.
func pipe(t *testing.T) (orders *os.File, r *run) {
	t.Helper()
	orders, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = orders.Close(), in.Close() })
	return orders, &run{orders: in}
}
