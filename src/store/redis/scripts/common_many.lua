-- SPDX-License-Identifier: Apache-2.0
-- What is in the hash of a key that several may hold at once (it has the field #m), without the
-- holds that are over; nil where it is no lock. Beside the fields of common_view: #m the mode, s
-- (shared) or p and the limit; #k<id> until when the permit of a hold that is over counts as taken; #x until
-- when nobody joins, because somebody waits to have the key alone.
-- A record has more, and begins with a letter, so that a program that knows one owner only does not
-- mistake it.
local function parse_many(id, value)
  local count, granted, lease, max_hold, min_hold, delay, number, who, owner = string.match(value,
    '^m(%d+)\31(%d+)\31(%d+)\31(%d+)\31(%d+)\31(%d+)\31(%d+)\31([^\31]*\31[^\31]*)\31(.+)$')
  if not owner then return nil end
  granted, max_hold = tonumber(granted), tonumber(max_hold)
  return {id = id, owner = owner, who = who, count = tonumber(count), granted = granted,
    deadline = granted + lease, max_end = max_hold > 0 and granted + max_hold or 0,
    min_end = granted + min_hold, delay = tonumber(delay), number = tonumber(number)}
end

local function record_many(h)
  return string.format('mINT\31INT\31INT\31INT\31INT\31INT\31INT\31%s\31%s', h.count, h.granted,
    h.deadline - h.granted, h.max_end > 0 and h.max_end - h.granted or 0, h.min_end - h.granted,
    h.delay, h.number, h.who, h.owner)
end

local function ends_many(h) return math.max(h.deadline + h.delay, h.min_end) end

-- A hold is over; what it had is kept back until then. A permit stays with its owner while that
-- holds it in another way.
local function keep_many(v, h, till, now)
  if till <= now then return end
  if v.mode == 's' then
    v.kept = math.max(v.kept, till)
    return
  end
  for _, other in ipairs(v.holds) do
    if other.owner == h.owner then
      if till > other.min_end then
        other.min_end = till
        v.changed[#v.changed + 1] = other
      end
      return
    end
  end
  v.slots['#k' .. h.id] = till
  v.changed[#v.changed + 1] = '#k' .. h.id
end

local function end_many(v, h)
  for _, field in ipairs({'#h', '#n', '#o'}) do v.dead[#v.dead + 1] = field .. h.id end
  v.ended = true
end

local function view_many(all, now)
  local v = {holds = {}, notes = {}, counts = {}, written = {}, dead = {}, changed = {}, slots = {}, kept = 0,
    foreign = 0, writer = 0}
  local records, ops = {}, {}
  for i = 1, #all, 2 do
    local field, value = all[i], all[i + 1]
    local kind, rest = string.sub(field, 1, 2), string.sub(field, 3)
    if string.byte(field) ~= 35 then
      v.written[field] = value
    elseif kind == '#h' then
      local h = parse_many(rest, value)
      if not h then return nil end
      records[#records + 1] = h
    elseif kind == '#m' then
      v.mark, v.mode, v.limit = value, string.sub(value, 1, 1), tonumber(string.sub(value, 2)) or 0
    elseif kind == '#t' then
      v.token = value
    elseif kind == '#w' then
      v.waits = true
    elseif kind == '#x' then
      v.writer = tonumber(value) or 0
    elseif kind == '#n' then
      v.notes[rest] = value
    elseif kind == '#o' then
      ops[rest] = value
    elseif field == '#k' then
      v.kept = tonumber(value) or 0
    elseif kind == '#k' then
      if tonumber(value) > now then
        v.slots[field] = tonumber(value)
      else
        v.dead[#v.dead + 1] = field
        v.ended = true
      end
    end
  end
  local over = {}
  for _, h in ipairs(records) do
    h.ops = ops[h.id] or ''
    -- An owner that was removed from outside has no holds, and nothing is kept back for it.
    if h.deadline > now and v.written[h.owner] then
      v.holds[#v.holds + 1] = h
      v.counts[h.owner] = (v.counts[h.owner] or 0) + h.count
    else
      over[#over + 1] = h
    end
  end
  for _, h in ipairs(over) do
    end_many(v, h)
    if v.written[h.owner] then keep_many(v, h, ends_many(h), now) end
  end
  return v
end

-- When the key can be free without a release at the earliest, and at the latest.
local function times_many(v)
  local first, last = math.huge, v.kept
  for _, h in ipairs(v.holds) do
    first, last = math.min(first, ends_many(h)), math.max(last, ends_many(h))
  end
  for _, till in pairs(v.slots) do
    first, last = math.min(first, till), math.max(last, till)
  end
  return first, last
end

local function permits_taken(v)
  local taken = 0
  for _ in pairs(v.counts) do taken = taken + 1 end
  for _ in pairs(v.slots) do taken = taken + 1 end
  return taken
end

local function holds_nothing(v) return #v.holds == 0 and next(v.slots) == nil end

-- Writes what a changed view means for the key as a whole. What frees memory comes first. `tell`
-- hears of what became free, where somebody waits. Answers whether nobody holds the key and nothing
-- keeps it back.
local function settle_many(key, v, now)
  local free = holds_nothing(v) and v.kept <= now
  local function told()
    if not v.waits then return end
    v.waits = false
    tell(key, free)
  end
  if free then
    redis.call('DEL', key)
    told()
    return true
  end
  for owner in pairs(v.written) do
    if not v.counts[owner] then v.dead[#v.dead + 1] = owner end
  end
  if (v.ended and v.mode == 'p') or #v.holds == 0 then
    if v.waits then v.dead[#v.dead + 1] = '#w' end
    told()
  end
  for i = 1, #v.dead, 1000 do
    redis.call('HDEL', key, unpack(v.dead, i, math.min(i + 999, #v.dead)))
  end
  local _, last = times_many(v)
  local fields = {'#m', v.mark}
  for owner, count in pairs(v.counts) do
    if v.written[owner] ~= string.format('INT', count) then
      fields[#fields + 1], fields[#fields + 2] = owner, string.format('INT', count)
    end
  end
  for _, changed in ipairs(v.changed) do
    local slot = type(changed) == 'string'
    fields[#fields + 1] = slot and changed or '#h' .. changed.id
    fields[#fields + 1] = slot and string.format('INT', v.slots[changed]) or record_many(changed)
  end
  if v.kept > now then
    fields[#fields + 1], fields[#fields + 2] = '#k', string.format('INT', v.kept)
  end
  for i = 1, #fields, 1000 do
    redis.call('HSET', key, unpack(fields, i, math.min(i + 999, #fields)))
  end
  redis.call('PEXPIREAT', key, string.format('INT', last))
  return false
end

local function find_many(v, owner, who, id)
  for i, h in ipairs(v.holds) do
    if h.owner == owner and h.who == who and (not id or h.id == id) then return h, i end
  end
end
