//go:build !race

package pairs

import "strings"

// seen are cases that were wrong, which are always run.
var seen = strings.Split(strings.TrimSpace(`
blob: JSON, Replace/id and */quiet/rerun
blob: metadata, Replace/id and */quiet/rerun
entity: MergeGiven, Replace/id and */quiet/rerun
entity: ReplaceGiven, Replace/id and */quiet/rerun
blob: JSON, Update/id/quiet/JSON, Replace given *, rerun
blob: JSON, Update/id/quiet/metadata, Replace given *, rerun
entity: MergeChanges, Update/id/quiet/Transact, Merge unread given id, rerun
entity: MergeChanges, Update/id/quiet/Transact, Upsert unread given id, rerun
entity: MergeChanges, Update/id/quiet/Transact, Put unread, rerun
entity: MergeChanges, Update/id/quiet/Transact, Replace unread, rerun
entity: MergeGiven, Replace/id and etag/quiet/after an operation of MergeChanges, Update
entity: ReplaceGiven, Replace/id and etag/quiet/after an operation of MergeChanges, Update
entity: MergeChanges, Update/always/quiet/Transact, Merge unread meanwhile
entity: Transact, Put unread/id/quiet/rerun
entity: Transact, Upsert unread/id/quiet/rerun
entity: Transact, Merge unread/id/quiet/rerun
entity: Transact, Replace unread/id/quiet/rerun
entity: Transact, Put unread/id/quiet/MergeChanges, Update, rerun
entity: Transact, Get and Update/id/request lost/rerun meanwhile
entity: Transact, Get and Update/id/answer lost/Transact, Merge unread meanwhile
blob: tags, Update/no lineage/quiet/after an operation of tags, Update
blob: JSON, Update/broken/quiet/nothing
blob: JSON, Replace/broken/quiet/nothing
blob: JSON, Document/broken/quiet/nothing
container: metadata, Update/plain/quiet/foreign writer meanwhile
container: metadata, Update/plain/quiet/ACL, Update meanwhile
container: metadata, Replace/etag/quiet/made again, rerun
blob: JSON, Update/id and holder/quiet/later holder
entity: Transact, Get and Update/id and holder/quiet/later holder
container: metadata, Update/plain/outage of requests/nothing
counter: Create and Add/create/answer lost/deleted meanwhile, and once more later
blob: JSON, Update/plain/hang/JSON, Update meanwhile
entity: Transact, Get and Update/plain/hang/MergeChanges, Update meanwhile
blob: Upload/plain/hang/nothing
entity: Upsert, merge/plain/hang/nothing
blob: JSON, Update/plain/busy/nothing
blob: Create/create/answer lost/overwritten by a copy meanwhile
blob: JSON, Update/lost/quiet/nothing
entity: Transact, Get and Update/lost/quiet/nothing
`), "\n")
