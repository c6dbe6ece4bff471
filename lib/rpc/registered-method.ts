import type { DescMethod, DescService } from "@bufbuild/protobuf";
import {
  type ConnectRouter,
  createMethodImplSpec,
  createServiceImplSpec,
  type Interceptor,
  type MethodImpl,
  type MethodImplSpec,
  type ServiceImpl,
} from "@connectrpc/connect";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";

/** Registers the RPCs of one or more services. */
export type RegisterRoutes = (router: ConnectRouter) => void;

/** Limits of the messages that an RPC port takes and gives, bytes each. Requests have lower ones by RPC. */
export interface MessageLimits {
  readMaxBytes: number;
  writeMaxBytes: number;
}

/** 1 MiB both ways: every service but image. */
export const defaultMessageLimits: MessageLimits = { readMaxBytes: 1 << 20, writeMaxBytes: 1 << 20 };

/** An RPC as it was registered: what carries it out, what runs around that, and its limits. */
export interface RegisteredMethod extends Readonly<MessageLimits> {
  readonly spec: MethodImplSpec;
  readonly interceptors: readonly Interceptor[];
}

/** What a service may be registered with here; whoever wants more of the library's has to see to it on every path. */
type RouteOptions = Partial<Pick<UniversalHandlerOptions, "interceptors" | keyof MessageLimits>>;

/** The RPCs that are registered, in their order; `limits` are those of services that state none. */
export function registeredMethods(routes: RegisterRoutes, limits: MessageLimits): RegisteredMethod[] {
  const methods: RegisteredMethod[] = [];
  const add = (spec: MethodImplSpec, options: RouteOptions = {}) => {
    const { interceptors = [], readMaxBytes, writeMaxBytes, ...unknown } = options;
    const [name] = Object.keys(unknown);
    if (name !== undefined) throw new TypeError(`${spec.method.toString()} is registered with ${name}`);
    methods.push({
      spec,
      interceptors,
      readMaxBytes: readMaxBytes ?? limits.readMaxBytes,
      writeMaxBytes: writeMaxBytes ?? limits.writeMaxBytes,
    });
  };
  const router: ConnectRouter = {
    handlers: [],
    service<T extends DescService>(
      service: T,
      implementation: Partial<ServiceImpl<T>>,
      options?: RouteOptions,
    ) {
      const specs = Object.values(createServiceImplSpec(service, implementation).methods);
      for (const spec of specs) add(spec, options);
      return router;
    },
    rpc<M extends DescMethod>(method: M, implementation: MethodImpl<M>, options?: RouteOptions) {
      add(createMethodImplSpec(method, implementation), options);
      return router;
    },
  };
  routes(router);
  return methods;
}
