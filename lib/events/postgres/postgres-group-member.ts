/**
 * A member of a group: renews its lease, and reads the partitions that it holds.
 *
 * 1. One renewal at a time; it tells what is held, and readers begin and end after it only.
 * 2. A partition is let go of once its reader has ended, and by the next renewal.
 * 3. A member that could not renew its lease in time acts as if it had lost everything, until it learns better.
 */
import type { Clock } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import type { BusConsumer, ConsumeOptions } from "../bus.ts";
import { withLimit } from "../with-limit.ts";
import type { BusDatabase } from "./postgres-bus-tables.ts";
import { keepShare } from "./postgres-lease.ts";
import {
  type HeldPartition,
  type MemberName,
  removeMember,
  renewMember,
  type Share,
  type ShareWish,
} from "./postgres-membership.ts";
import { PartitionReader } from "./postgres-partition-reader.ts";
import type { PostgresWakeups } from "./postgres-wakeups.ts";

/** What a member works with. */
export interface GroupMemberOptions {
  readonly database: BusDatabase;
  readonly wakeups: Pick<PostgresWakeups, "listen" | "tellGroupChanged">;
  readonly log: Log;
  readonly clock: Clock;
  readonly consume: ConsumeOptions;
  /** A UUID that no other member has or had. */
  readonly memberId: string;
  /** How long after its last sign of life a member is taken for dead. */
  readonly leaseMs: number;
}

/** Renewals in the time of a lease; each also looks for news that were missed. */
const renewalsPerLease = 3;
const maxLeaveTries = 3;

/** A consumer of the PostgreSQL bus. */
export class PostgresGroupMember implements BusConsumer {
  readonly #options: GroupMemberOptions;
  readonly #name: MemberName;
  readonly #readers = new Map<number, PartitionReader>();
  readonly #ended: Promise<void>;
  #groupId: number | undefined;
  #renewedAtMs: number | undefined;
  #lapse: NodeJS.Timeout | undefined;
  #leaving = false;
  #left = false;
  /** Whether it has ever held a partition: before, messages may wait that it does not know of. */
  #hasHeld = false;
  #away = false;
  #wake = Promise.withResolvers<void>();

  constructor(options: GroupMemberOptions) {
    const { topic, group } = options.consume;
    this.#options = options;
    this.#name = { topic, group, memberId: options.memberId };
    this.#ended = this.#run();
  }

  get connected(): boolean {
    const { clock, leaseMs } = this.#options;
    return this.#renewedAtMs !== undefined && clock.monotonicMs() - this.#renewedAtMs < leaseMs;
  }

  get lag(): number | undefined {
    if (!this.connected || !this.#hasHeld) return undefined;
    const running = [...this.#readers.values()].filter((reader) => reader.running);
    return running.reduce((sum, { lag }) => sum + lag, 0);
  }

  async leave(): Promise<void> {
    this.#leaving = true;
    await Promise.all([...this.#readers.values()].map((reader) => reader.end({ abort: true })));
    this.#left = true;
    this.#wake.resolve();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { wakeups, leaseMs } = this.#options;
    const stopListening = wakeups.listen({
      appended: ({ partitionId, nextOffset }) => this.#readers.get(partitionId)?.reaches(nextOffset),
      groupChanged: (groupId) => {
        if (groupId === this.#groupId) this.#wake.resolve();
      },
      mayHaveMissed: () => this.#wake.resolve(),
    });
    while (!this.#left) {
      await this.#renew();
      await this.#sleep(leaseMs / renewalsPerLease);
    }
    stopListening();
    clearTimeout(this.#lapse);
    await this.#remove();
    this.#renewedAtMs = undefined;
  }

  async #renew(): Promise<void> {
    const { database, log, clock, leaseMs } = this.#options;
    const { topic, group } = this.#name;
    const beganAtMs = clock.monotonicMs();
    const readers = [...this.#readers];
    const released = readers.filter(([, { running }]) => !running).map(([partitionId]) => partitionId);
    const busy = readers.filter(([, { running }]) => running).map(([partitionId]) => partitionId);
    try {
      const wish = { leaseMs, released, busy, takesMore: !this.#leaving };
      const renewal = this.#keep(wish).then((kept) => kept ?? renewMember(database, this.#name, wish));
      const share = await withLimit(renewal, { timeoutMs: leaseMs });
      if (share === undefined) throw new Error(`there is no topic ${topic}`);
      for (const partitionId of released) this.#readers.delete(partitionId);
      if (this.#away) log.info({ topic, group }, "the bus is back");
      this.#away = false;
      this.#renewed(share, beganAtMs);
    } catch (thrown) {
      if (!this.#away) log.warn({ err: thrown, topic, group }, "the bus is away");
      this.#away = true;
    }
  }

  /** As long as nothing changes in its group, a member only says that it lives. */
  async #keep({ leaseMs, released }: ShareWish): Promise<Share | undefined> {
    if (this.#groupId === undefined || released.length > 0) return undefined;
    return keepShare(this.#options.database, this.#name, this.#groupId, leaseMs);
  }

  #renewed(share: Share, beganAtMs: number): void {
    const { wakeups, leaseMs, clock } = this.#options;
    this.#groupId = share.groupId;
    this.#renewedAtMs = beganAtMs;
    clearTimeout(this.#lapse);
    this.#lapse = setTimeout(() => this.#lapsed(), Math.max(0, beganAtMs + leaseMs - clock.monotonicMs()));
    this.#lapse.unref();
    this.#hasHeld ||= share.held.length > 0;
    const held = new Set(share.held.map(({ partitionId }) => partitionId));
    for (const [partitionId, reader] of this.#readers) {
      if (!held.has(partitionId)) void reader.end({ abort: true });
    }
    for (const partition of share.held) this.#read(share.groupId, partition);
    for (const partitionId of share.surplus) void this.#readers.get(partitionId)?.end({ abort: false });
    if (share.changed) wakeups.tellGroupChanged(share.groupId);
  }

  #read(groupId: number, partition: HeldPartition): void {
    const reader = this.#readers.get(partition.partitionId);
    if (reader !== undefined) {
      reader.recover();
      reader.reaches(partition.nextOffset, partition.firstOffset);
      return;
    }
    if (this.#leaving) return;
    const { database, log, consume, memberId } = this.#options;
    const onEnd = () => this.#wake.resolve();
    const options = { database, log, consume, groupId, memberId, partition, onEnd };
    this.#readers.set(partition.partitionId, new PartitionReader(options));
  }

  #lapsed(): void {
    const { topic, group } = this.#name;
    this.#options.log.warn({ topic, group }, "the lease ran out");
    for (const reader of this.#readers.values()) reader.lapse();
  }

  async #sleep(durationMs: number): Promise<void> {
    const timer = setTimeout(() => this.#wake.resolve(), durationMs);
    await this.#wake.promise;
    clearTimeout(timer);
    this.#wake = Promise.withResolvers();
  }

  /** Its lease ends anyhow; a member that can say so spares the others the wait. */
  async #remove(): Promise<void> {
    const { database, wakeups, log, leaseMs } = this.#options;
    for (let tries = 0; tries < maxLeaveTries; tries += 1) {
      try {
        const timeoutMs = leaseMs / maxLeaveTries;
        const groupId = await withLimit(removeMember(database, this.#name), { timeoutMs });
        if (groupId !== undefined) wakeups.tellGroupChanged(groupId);
        return;
      } catch (thrown) {
        log.debug({ err: thrown, group: this.#name.group }, "a member could not leave its group");
      }
    }
  }
}
