//go:build unix && !race

package root

// before are the command lines that make what every row of rightsRows finds. Stdin of each is {"n":1}.
const before = `container create jobs
blob put jobs/a --file -
blob append jobs/log --file - --create
blob page create jobs/p --size 1024
blob block put jobs/big --id x --file -
table create jobs
table create azconcmarkers
table insert jobs/eu/1 --set n=1
queue create orders
queue send orders --file -
queue create orders-poison
queue send orders-poison --file -
share create reports
file put reports/a.json --file -
counter create jobs/visits --shards 2`

// rightsRow is a row of the page: what the row is called, command lines that come before, and the command line that is run with the
// rights that the table of package rights names. ${x} is what one of the commands before has printed as x.
type rightsRow struct{ name, before, args string }

// rightsRows has each verb that sends requests, and again where it needs other rights with a flag or in another state.
var rightsRows = []rightsRow{
	{"blob abort-copy", "blob copy jobs/a jobs/pending", "blob abort-copy jobs/pending ${copy_id}"},
	{"blob append", "", "blob append jobs/log --file -"},
	{"blob append --create", "", "blob append jobs/new --file - --create"},
	{"blob append --record", "", "blob append jobs/log --file - --record"},
	{"blob append --roll", "blob append jobs/app --file - --record --roll", "blob append jobs/app --file - --record --roll --max-size 80"},
	{"blob block commit", "", "blob block commit jobs/big x"},
	{"blob block list", "", "blob block list jobs/big"},
	{"blob block put", "", "blob block put jobs/big --id y --file -"},
	{"blob copy", "", "blob copy jobs/a jobs/a2"},
	{"blob delete", "", "blob delete jobs/a"},
	{"blob get", "", "blob get jobs/a"},
	{"blob headers set", "", "blob headers set jobs/a --cache-control no-cache"},
	{"blob lease acquire", "", "blob lease acquire jobs/a"},
	{"blob lease break", "blob lease acquire jobs/a", "blob lease break jobs/a"},
	{"blob lease change", "blob lease acquire jobs/a", "blob lease change jobs/a --lease-id ${lease_id}"},
	{"blob lease release", "blob lease acquire jobs/a", "blob lease release jobs/a --lease-id ${lease_id}"},
	{"blob lease renew", "blob lease acquire jobs/a", "blob lease renew jobs/a --lease-id ${lease_id}"},
	{"blob lease show", "", "blob lease show jobs/a"},
	{"blob list", "", "blob list jobs"},
	{"blob metadata set", "", "blob metadata set jobs/a k=v"},
	{"blob metadata show", "", "blob metadata show jobs/a"},
	{"blob metadata update", "", "blob metadata update jobs/a k=v"},
	{"blob page clear", "", "blob page clear jobs/p --offset 0 --size 512"},
	{"blob page create", "", "blob page create jobs/p2 --size 512 --if-none-match *"},
	{"blob page put", "", "blob page put jobs/p --offset 0 --file PAGE"},
	{"blob page ranges", "", "blob page ranges jobs/p"},
	{"blob put", "", "blob put jobs/a --file -"},
	{"blob put --if-none-match '*'", "", "blob put jobs/new --file - --if-none-match *"},
	{"blob show", "", "blob show jobs/a"},
	{"blob snapshot", "", "blob snapshot jobs/a"},
	{"blob tags set", "", "blob tags set jobs/a k=v"},
	{"blob tags show", "", "blob tags show jobs/a"},
	{"blob tags update", "", "blob tags update jobs/a k=v"},
	{"blob update", "", "blob update jobs/a --set n=2"},

	{"container acl set", "", "container acl set jobs --file ACL"},
	{"container acl show", "", "container acl show jobs"},
	{"container create", "", "container create more"},
	{"container delete", "", "container delete jobs"},
	{"container lease acquire", "", "container lease acquire jobs"},
	{"container lease break", "container lease acquire jobs", "container lease break jobs"},
	{"container lease change", "container lease acquire jobs", "container lease change jobs --lease-id ${lease_id}"},
	{"container lease release", "container lease acquire jobs", "container lease release jobs --lease-id ${lease_id}"},
	{"container lease renew", "container lease acquire jobs", "container lease renew jobs --lease-id ${lease_id}"},
	{"container lease show", "", "container lease show jobs"},
	{"container list", "", "container list"},
	{"container metadata set", "", "container metadata set jobs k=v"},
	{"container metadata show", "", "container metadata show jobs"},
	{"container metadata update", "", "container metadata update jobs k=v"},
	{"container show", "", "container show jobs"},

	{"counter add", "", "counter add jobs/visits"},
	{"counter create", "", "counter create jobs/more"},
	{"counter delete", "", "counter delete jobs/visits"},
	{"counter get", "", "counter get jobs/visits"},

	{"elect run", "", "elect run jobs/leader --once -- true"},
	{"group show", "", "group show jobs/ingest"},
	{"lock break", "blob lease acquire jobs/nightly --duration infinite", "lock break jobs/nightly --now"},
	{"lock gc", "pass 1h", "lock gc jobs --unused 1m"},
	{"lock hold", "", "lock hold jobs/nightly --for 1ms"},
	{"lock list", "", "lock list jobs"},
	{"lock run", "", "lock run jobs/nightly -- true"},
	{"lock show", "", "lock show jobs/nightly"},
	{"semaphore run", "", "semaphore run jobs/pool --slots 2 -- true"},
	{"once forget", "", "once forget jobs/deploy-42"},
	{"once list", "", "once list jobs"},
	{"once run", "", "once run jobs/deploy-43 -- true"},
	{"once show", "once run jobs/deploy-44 -- true", "once show jobs/deploy-44"},

	{"file delete", "", "file delete reports/a.json"},
	{"file get", "", "file get reports/a.json"},
	{"file handles close", "", "file handles close reports/a.json --all --yes"},
	{"file handles list", "", "file handles list reports/a.json"},
	{"file lease acquire", "", "file lease acquire reports/a.json"},
	{"file lease break", "file lease acquire reports/a.json", "file lease break reports/a.json"},
	{"file lease change", "file lease acquire reports/a.json", "file lease change reports/a.json --lease-id ${lease_id}"},
	{"file lease release", "file lease acquire reports/a.json", "file lease release reports/a.json --lease-id ${lease_id}"},
	{"file lease renew", "file lease acquire reports/a.json", "file lease renew reports/a.json --lease-id ${lease_id}"},
	{"file lease show", "", "file lease show reports/a.json"},
	{"file list", "", "file list reports"},
	{"file put", "", "file put reports/a.json --file -"},
	{"file show", "", "file show reports/a.json"},
	{"file update", "", "file update reports/a.json --set n=2"},
	{"file wait", "", "file wait reports/a.json"},

	{"queue acl set", "", "queue acl set orders --file ACL"},
	{"queue acl show", "", "queue acl show orders"},
	{"queue clear", "", "queue clear orders"},
	{"queue consume, with messages that fail", "", "queue consume orders --exec false --max-messages 1"},
	{"queue consume", "", "queue consume orders --exec true --exit-when-empty"},
	{"queue consume --inbox", "", "queue consume orders --exec cat<CAT --inbox jobs/eu --exit-when-empty"},
	{"queue create", "", "queue create more"},
	{"queue delete", "", "queue delete orders"},
	{"queue delete-message", "queue receive orders", "queue delete-message orders ${message_id} --pop-receipt ${pop_receipt}"},
	{"queue extend", "queue receive orders", "queue extend orders ${message_id} --pop-receipt ${pop_receipt} --visibility 1m"},
	{"queue gc", "", "queue gc orders"},
	{"queue list", "", "queue list"},
	{"queue metadata set", "", "queue metadata set orders k=v"},
	{"queue metadata show", "", "queue metadata show orders"},
	{"queue metadata update", "", "queue metadata update orders k=v"},
	{"queue peek", "", "queue peek orders"},
	{"queue properties set", "", "queue properties set --file PROPERTIES"},
	{"queue properties show", "", "queue properties show"},
	{"queue receive", "", "queue receive orders"},
	{"queue redrive", "", "queue redrive orders-poison orders"},
	{"queue send", "", "queue send orders --file -"},
	{"queue show", "", "queue show orders"},

	{"share create", "", "share create more"},
	{"share delete", "", "share delete reports"},
	{"share lease acquire", "", "share lease acquire reports"},
	{"share lease break", "share lease acquire reports", "share lease break reports"},
	{"share lease change", "share lease acquire reports", "share lease change reports --lease-id ${lease_id}"},
	{"share lease release", "share lease acquire reports", "share lease release reports --lease-id ${lease_id}"},
	{"share lease renew", "share lease acquire reports", "share lease renew reports --lease-id ${lease_id}"},
	{"share lease show", "", "share lease show reports"},
	{"share list", "", "share list"},
	{"share show", "", "share show reports"},

	{"table create", "", "table create more"},
	{"table delete", "", "table delete jobs"},
	{"table delete-entity", "", "table delete-entity jobs/eu/1 --if-match *"},
	{"table get", "", "table get jobs/eu/1"},
	{"table insert", "", "table insert jobs/eu/2 --set n=1"},
	{"table list", "", "table list"},
	{"table lock run", "", "table lock run jobs --container jobs -- true"},
	{"table merge", "", "table merge jobs/eu/1 --if-match * --set n=2"},
	{"table query", "", "table query jobs"},
	{"table replace", "", "table replace jobs/eu/1 --if-match * --set n=2"},
	{"table transact", "", "table transact jobs/eu --file OPERATIONS"},
	{"table update", "", "table update jobs/eu/1 --set n=2"},
	{"table upsert", "", "table upsert jobs/eu/1 --set n=2"},

	{"tf run", "", "tf run jobs/prod.tfstate -- true"},
	{"tf show", "blob put jobs/prod.tfstate --file -", "tf show jobs/prod.tfstate"},
	{"tf unlock", "blob put jobs/prod.tfstate --file - --metadata terraformlockid=eyJJRCI6IjAwMDAwMDAwLTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwYSJ9;blob lease acquire jobs/prod.tfstate --duration infinite --lease-id 00000000-0000-4000-8000-00000000000a", "tf unlock jobs/prod.tfstate --yes --id 00000000-0000-4000-8000-00000000000a"},
	{"top", "", "top -o json"},
	{"top, of containers that it is given", "", "top jobs -o json"},
}
