import type { ISocketFactory, Kafka } from "kafkajs";
import type { Log } from "../../runtime/log.ts";
import { withLimit } from "../../runtime/with-limit.ts";
import type { BusConsumer, ConsumeOptions } from "../bus.ts";
import { RetryPause } from "../retry-pause.ts";
import { KafkaFetchSockets } from "./kafka-fetch-sockets.ts";
import { KafkaMember } from "./kafka-member.ts";

interface KafkaGroupMemberOptions {
  readonly openClient: (own: { socketFactory: ISocketFactory }) => Kafka;
  readonly consume: ConsumeOptions;
  readonly sessionTimeoutMs: number;
  readonly log: Log;
}

/** Members hear of a broker with each heartbeat, idle ones at least every two seconds. */
const connectedWithinMs = 5000;

/** A member of a group that joins again whenever its membership breaks, until it leaves. */
export class KafkaGroupMember implements BusConsumer {
  readonly #options: KafkaGroupMemberOptions;
  readonly #leaving = new AbortController();
  readonly #pause = new RetryPause(200, 5000);
  readonly #ended: Promise<void>;
  #member: KafkaMember | undefined;

  constructor(options: KafkaGroupMemberOptions) {
    this.#options = options;
    this.#ended = this.#run();
  }

  get connected(): boolean {
    const silentMs = this.#member?.silentMs ?? Number.POSITIVE_INFINITY;
    return silentMs < Math.max(connectedWithinMs, this.#options.sessionTimeoutMs / 2);
  }

  get lag(): number | undefined {
    return this.connected ? this.#member?.lag : undefined;
  }

  async leave(): Promise<void> {
    this.#leaving.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { signal } = this.#leaving;
    while (!signal.aborted) {
      await this.#beMember(signal);
      await this.#pause.wait(signal);
    }
  }

  async #beMember(signal: AbortSignal): Promise<void> {
    const { openClient, consume, sessionTimeoutMs, log } = this.#options;
    const { topic, group } = consume;
    const fetchSockets = new KafkaFetchSockets();
    const client = openClient({ socketFactory: fetchSockets.factory });
    const member = new KafkaMember({ ...consume, client, fetchSockets, sessionTimeoutMs, log });
    this.#member = member;
    try {
      await withLimit(Promise.race([member.broken, this.#join(member)]), { signal });
      await withLimit(member.broken, { signal });
    } catch (thrown) {
      if (!signal.aborted && !this.#pause.failing)
        log.warn({ err: thrown, topic, group }, "not in the group; joining is tried again");
    }
    this.#member = undefined;
    await member.leave();
  }

  async #join(member: KafkaMember): Promise<void> {
    const { consume, log } = this.#options;
    await member.join();
    this.#pause.reset();
    log.info({ topic: consume.topic, group: consume.group }, "in the group");
  }
}
