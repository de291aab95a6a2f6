// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/promises.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"

namespace holdfast::sim {
namespace {

// A renewal that was sent in time may still be on its way; clocks drift.
constexpr Nanos kOnItsWay = 250 * kMillisecond;

size_t HashOf(const std::string& id) { return std::hash<std::string>()(id); }

// Whom the request concerns; null: no hold.
const HoldRef* NamedBy(const StoreRequest& request) {
  if (const auto* op = std::get_if<AcquireOp>(&request.op)) return &op->hold;
  if (const auto* op = std::get_if<ReleaseOp>(&request.op)) return &op->hold;
  if (const auto* op = std::get_if<RenewOp>(&request.op)) return &op->hold;
  return nullptr;
}

const KeyName* KeyOf(const StoreRequest& request) {
  if (const HoldRef* ref = NamedBy(request)) return &ref->name;
  if (const auto* op = std::get_if<PassOnOp>(&request.op)) return &op->name;
  const auto* force = std::get_if<ForceOp>(&request.op);
  return force != nullptr ? &force->name : nullptr;
}

bool Names(const StoreRequest& request, const memory::HoldRecord& hold) {
  const HoldRef* ref = NamedBy(request);
  if (ref == nullptr || ref->owner != hold.owner || ref->session != hold.session) return false;
  if (std::holds_alternative<AcquireOp>(request.op)) return true;
  const auto* release = std::get_if<ReleaseOp>(&request.op);
  if (release != nullptr && release->kind == ReleaseKind::kUndo) return true;
  return ref->hold_id == hold.hold_id && ref->epoch == hold.epoch;
}

const memory::HoldRecord* FindIn(const memory::KeyRecord* record, const std::string& hold_id) {
  if (record == nullptr) return nullptr;
  const auto it =
      std::find_if(record->holds.begin(), record->holds.end(),
                   [&](const memory::HoldRecord& hold) { return hold.hold_id == hold_id; });
  return it == record->holds.end() ? nullptr : &*it;
}

std::string Tell(const StoreRequest& request, const StoreReply& reply) {
  static constexpr const char* kRequests[] = {"take", "release", "pass on", "renew", "force"};
  static constexpr const char* kReplies[] = {"granted",  "busy", "refused", "of another mode",
                                             "released", "gone", "renewed", "forced"};
  const size_t asked = request.op.index();
  const size_t answered = reply.result.index();
  std::string told = absl::StrCat("store: ", asked < std::size(kRequests) ? kRequests[asked] : "?",
                                  " ", KeyOf(request)->key, ": ",
                                  answered < std::size(kReplies) ? kReplies[answered] : "no");
  if (const HoldRef* ref = NamedBy(request)) {
    absl::StrAppend(&told, ", owner ", ref->owner, ", hold ", ref->hold_id);
  }
  if (const auto* op = std::get_if<AcquireOp>(&request.op)) absl::StrAppend(&told, ", ", op->op_id);
  if (const auto* op = std::get_if<ReleaseOp>(&request.op)) {
    absl::StrAppend(&told, ", ", op->op_id, " kind ", static_cast<int>(op->kind));
  }
  if (const auto* granted = std::get_if<Granted>(&reply.result)) {
    absl::StrAppend(&told, ", count ", granted->hold_count, granted->replayed ? " again" : "");
  }
  if (const auto* released = std::get_if<Released>(&reply.result)) {
    absl::StrAppend(&told, ", count ", released->hold_count);
  }
  if (const auto* busy = std::get_if<Busy>(&reply.result)) {
    absl::StrAppend(&told, ", free in ", absl::FormatDuration(busy->free_in));
  }
  return told;
}

bool IsCommand(const std::string& op_id) { return absl::StartsWith(op_id, "ac"); }

}  // namespace

Promises::KeyPast& Promises::PastOf(const KeyName& name) {
  for (KeyPast& past : past_) {
    if (past.name == name) return past;
  }
  past_.emplace_back().name = name;
  return past_.back();
}

// ---- What clients believe

void Promises::CompareBeliefs() {
  grown_ = false;
  believed_.clear();
  for (const SimClient* client : clients_) {
    for (const Belief& belief : client->beliefs()) {
      if (!client->Relies(belief)) continue;
      CompareWithStore(belief);
      if (CompareWithOthers(belief)) believed_.push_back(&belief);
    }
  }
}

// Answers whether it is one owner more.
bool Promises::CompareWithOthers(const Belief& belief) {
  bool is_new = true;
  size_t owners = 1;
  for (const Belief* other : believed_) {
    if (other->name != belief.name) continue;
    const bool same_owner = other->owner == belief.owner;
    const bool same_way = belief.mode == other->mode && belief.limit == other->limit;
    is_new = is_new && !same_owner;
    owners += same_owner ? 0 : 1;
    if (same_way && (same_owner || belief.mode != Mode::kExclusive)) continue;
    Break("two holders of ", belief.name.key, ": ", other->owner, " (", other->hold_id, ", mode ",
          static_cast<int>(other->mode), ") and ", belief.owner, " (", belief.hold_id, ", mode ",
          static_cast<int>(belief.mode), ")");
  }
  tally_->together += is_new && owners > 1;
  if (belief.mode == Mode::kPermit && owners > belief.limit) {
    Break(owners, " permits of ", belief.name.key, ", limit ", belief.limit);
  }
  return is_new;
}

void Promises::CompareWithStore(const Belief& belief) {
  // What a restart made the store forget is over before its grace period is.
  if (belief.asked_at <= server_->restarted_at()) return;
  const memory::KeyRecord* record = server_->table().Find(belief.name);
  const memory::HoldRecord* hold = FindIn(record, belief.hold_id);
  if (hold == nullptr || hold->deadline <= server_->Now()) {
    return Break("the store has no hold ", belief.hold_id, " of ", belief.name.key,
                 ", whose holder relies on it");
  }
  const int64_t token = record->mode == Mode::kPermit ? hold->number : record->token;
  if (token != belief.token) {
    Break("hold ", belief.hold_id, " has token ", token, ", its holder was told ", belief.token);
  }
  if (hold->count < belief.count) {
    Break("hold ", belief.hold_id, " counts ", hold->count, ", its holder ", belief.count);
  }
}

void Promises::OnSessionSpeaks(const std::string& session, Nanos ttl) {
  spoken_[session] = Spoken{world_->now(), ttl};
}

// ---- What the store does

void Promises::BeforeRequest(const StoreRequest& request) {
  const KeyName* name = KeyOf(request);
  if (name == nullptr) return;
  bystanders_.clear();
  named_before_ = 0;
  remembered_ = false;
  const memory::KeyRecord* record = server_->table().Find(*name);
  if (record == nullptr) return;
  const auto* force = std::get_if<ForceOp>(&request.op);
  if (force != nullptr && force->immediate) return;
  for (const memory::HoldRecord& hold : record->holds) {
    if (hold.deadline <= server_->Now()) continue;
    if (Names(request, hold)) {
      named_before_ = hold.count;
      const auto* op = std::get_if<AcquireOp>(&request.op);
      remembered_ = op != nullptr && std::count(hold.ops.begin(), hold.ops.end(), op->op_id) > 0;
    } else {
      bystanders_.push_back(Bystander{HashOf(hold.hold_id), hold.count, hold.deadline});
    }
  }
}

void Promises::AfterRequest(const StoreRequest& request, const StoreReply& reply) {
  const KeyName* name = KeyOf(request);
  if (name == nullptr) return;
  const memory::KeyRecord* record = server_->table().Find(*name);
  if (world_->telling()) world_->Note(Tell(request, reply));
  CheckBystanders(record);
  if (record != nullptr) CheckRecord(*name, *record);
  if (const auto* op = std::get_if<AcquireOp>(&request.op)) {
    if (const auto* granted = std::get_if<Granted>(&reply.result); granted && !granted->replayed) {
      CheckNewToken(*op, *granted);
      CountCommand(*op, *granted);
    }
  } else if (const auto* op = std::get_if<ReleaseOp>(&request.op)) {
    if (op->kind == ReleaseKind::kUndo) UncountCommand(*op);
    grown_ = true;  // nobody believes more now, but the store has less
  } else if (const auto* op = std::get_if<RenewOp>(&request.op)) {
    CheckRenewal(*op);
  }
}

void Promises::CheckBystanders(const memory::KeyRecord* record) {
  for (const Bystander& before : bystanders_) {
    const memory::HoldRecord* now = nullptr;
    if (record != nullptr) {
      for (const memory::HoldRecord& hold : record->holds) {
        if (HashOf(hold.hold_id) == before.hold) now = &hold;
      }
    }
    if (now == nullptr) return Break("a request ended a hold that is not its own");
    if (now->count != before.count || now->deadline != before.deadline) {
      return Break("a request changed hold ", now->hold_id, ", which is not its own");
    }
  }
}

void Promises::CheckRecord(const KeyName& name, const memory::KeyRecord& record) {
  size_t owners = 0;
  for (size_t i = 0; i < record.holds.size(); ++i) {
    if (record.holds[i].count == 0) Break("a hold of ", name.key, " without a count");
    const bool seen =
        std::any_of(record.holds.begin(), record.holds.begin() + static_cast<ptrdiff_t>(i),
                    [&](const auto& h) { return h.owner == record.holds[i].owner; });
    owners += seen ? 0 : 1;
  }
  if (record.mode == Mode::kExclusive && owners > 1) Break("two owners of ", name.key);
  if (record.mode == Mode::kPermit && owners + record.kept_permits.size() > record.limit) {
    Break("too many permits of ", name.key);
  }
}

void Promises::CheckNewToken(const AcquireOp& op, const Granted& granted) {
  KeyPast& past = PastOf(op.hold.name);
  if (granted.owner_count > 1) return;
  const memory::KeyRecord* record = server_->table().Find(op.hold.name);
  const bool joins = op.mode == Mode::kShared && record != nullptr && record->holds.size() > 1;
  if (joins ? granted.token != past.granted_token : granted.token <= past.granted_token) {
    Break("the store gave out token ", granted.token, " of ", op.hold.name.key, " after ",
          past.granted_token);
  }
  past.granted_token = std::max(past.granted_token, granted.token);
}

// An id counts within one life of a daemon, and in the store as long as the hold remembers it.
void Promises::CountCommand(const AcquireOp& op, const Granted& granted) {
  if (!IsCommand(op.op_id)) return;
  Counted& counted = counted_[{op.op_id, op.hold.name.key}];
  const std::string life = op.hold.hold_id.substr(0, 8);
  const bool stands = counted.times > 0 && counted.hold_id == granted.hold_id && named_before_ > 0;
  if (stands && (remembered_ || life == counted.life)) {
    Break("the command ", op.op_id, " was counted twice for ", granted.hold_id);
  }
  counted = Counted{granted.hold_id, life, 1};
}

void Promises::UncountCommand(const ReleaseOp& op) {
  const memory::KeyRecord* record = server_->table().Find(op.hold.name);
  uint32_t after = 0;
  if (record != nullptr) {
    for (const memory::HoldRecord& hold : record->holds) {
      if (hold.owner == op.hold.owner && hold.session == op.hold.session) after = hold.count;
    }
  }
  if (after >= named_before_) return;
  if (named_before_ - after > 1) Break("an undo took more than one count");
  if (!IsCommand(op.op_id)) return;
  Counted& counted = counted_[{op.op_id, op.hold.name.key}];
  if (counted.times != 1) Break("the command ", op.op_id, " was undone twice");
  counted.times = 0;
}

void Promises::CheckRenewal(const RenewOp& op) {
  if (op.hold.session.empty()) return;
  const auto it = spoken_.find(op.hold.session);
  if (it == spoken_.end()) return;
  // A daemon that was stopped hears only then what it was told meanwhile.
  const auto went_on = went_on_.find(op.hold.hold_id.substr(0, 8));
  const Nanos heard = std::max(it->second.at, went_on == went_on_.end() ? 0 : went_on->second);
  if (world_->now() <= heard + it->second.ttl + it->second.ttl / 50 + kOnItsWay) return;
  Break("hold ", op.hold.hold_id,
        " is renewed for a client that is silent for longer than its ttl");
}

// ---- What daemons say

void Promises::OnGoesOn(const std::string& life) { went_on_[life] = world_->now(); }

void Promises::AfterInput(const engine::Engine& engine) {
  if (const std::optional<std::string> wrong = engine.FindInconsistency()) Break("books: ", *wrong);
}

void Promises::OnEvent(const engine::Event& event) {
  if (const auto* lost = std::get_if<engine::Lost>(&event.body)) {
    world_->Note("lost ", lost->name.key, " hold ", lost->hold_id, " reason ",
                 static_cast<int>(lost->reason));
  }
  const auto* reply = std::get_if<engine::Reply>(&event.body);
  if (reply == nullptr) return;
  if (const auto* grant = std::get_if<engine::Grant>(&reply->result)) CheckTold(*grant, false);
  if (const auto* all = std::get_if<engine::AllGranted>(&reply->result)) {
    for (const engine::Grant& grant : all->grants) CheckTold(grant, true);
  }
}

// A set is told when it is complete: another permit may have been given out since, and its owner
// may have taken its key once more.
void Promises::CheckTold(const engine::Grant& grant, bool of_set) {
  world_->Note("grant ", grant.name.key, " to ", grant.owner, " hold ", grant.hold_id, " token ",
               grant.token, " count ", grant.hold_count, " mode ", static_cast<int>(grant.mode));
  world_->Mix(static_cast<uint64_t>(grant.token));
  KeyPast& past = PastOf(grant.name);
  const bool shares = grant.mode == Mode::kShared && past.told_mode == Mode::kShared;
  // A copy for a retry may be on its way while its own client gives the hold back.
  const bool copy = std::find(past.told_before.begin(), past.told_before.end(), grant.token) !=
                    past.told_before.end();
  if (!copy) past.told_before.push_back(grant.token);
  bool wrong = (grant.token < past.told_token && !copy) ||
               (grant.token == past.told_token && grant.owner != past.told_owner && !shares);
  if (grant.mode == Mode::kPermit) {
    // An id, for as long as its owner holds: it may be older than another's.
    const auto [it, is_new] = permits_.try_emplace(grant.token, grant.owner);
    const bool taken_now = is_new && !of_set && grant.hold_count == 1;
    const bool by_another = past.told_by != grant.hold_id.substr(0, 8);
    wrong =
        it->second != grant.owner || (taken_now && !by_another && grant.token <= past.told_token);
  }
  if (wrong) {
    Break("token ", grant.token, " of ", grant.owner, " after ", past.told_token, " of ",
          past.told_owner);
  }
  if (grant.token < past.told_token) return;
  const std::string by = grant.hold_id.substr(0, 8);
  tally_->moved_on += grant.token > past.told_token && !past.told_by.empty() && by != past.told_by;
  past.told_token = grant.token;
  past.told_owner = grant.owner;
  past.told_mode = grant.mode;
  past.told_by = by;
}

}  // namespace holdfast::sim
