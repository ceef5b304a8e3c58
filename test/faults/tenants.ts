import { createHash, randomBytes, randomUUID } from 'node:crypto'
import type { Pair } from '../harness/s3-door.ts'
import { until } from '../harness/until.ts'
import type { Ledger } from './ledger.ts'
import { Door } from './objects/requests.ts'
import type { Instance } from './server-instances.ts'

/** A setting or a token is `null` where its request had no response. */
interface Tenant {
  readonly name: string
  readonly key: string
  readonly maxItems: number
  authorization: string | null
  /** `unknown`: a request to create or to delete it had no response. */
  state: 'absent' | 'unknown-creation' | 'present' | 'unknown-deletion' | 'deleted'
  /** A request to create it waits for its response. A repetition that is on its way during a deletion may create the bucket again. */
  isBeingCreated: boolean
  /** The value of `trash_days`, and that of a change without a response. */
  trashDays: number
  trashDaysIfChanged: number | null
  /** Acknowledged items, with the SHA-256 of their bytes. */
  readonly items: Map<string, string>
  /** Acknowledged objects, with the SHA-256 of their bytes. */
  readonly objects: Map<string, string>
  /** The paths of the bytes of all acknowledged items. */
  readonly paths: string[]
}

/** Clients that create, set, fill, read and delete buckets, and record what they know of them. */
export interface Tenants {
  /** Until the server process ends. */
  workUntilGone(instance: Instance, count: number): Promise<void>
  /** Compares an idle service with the record, and settles what was unknown. */
  check(instance: Instance): Promise<void>
  /** Waits until nothing of the deleted buckets is left. */
  removed(
    instance: Instance,
    rowsOf: (statement: string) => Promise<Record<string, unknown>[]>,
  ): Promise<void>
}

const sha256Of = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

/** `manager` is the authorization of a service token that manages buckets, and `pair` the keys of one that may do everything. */
export function createTenants({ random, fault }: Ledger, manager: string, pair: Pair): Tenants {
  const tenants: Tenant[] = []

  const send = (
    { server }: Instance,
    method: string,
    path: string,
    authorization: string | null,
    body?: object | Uint8Array<ArrayBuffer>,
    headers: Readonly<Record<string, string>> = {},
  ) => {
    const isBytes = body instanceof Uint8Array
    return server.request(path, {
      method,
      headers: {
        authorization: authorization ?? '',
        ...(body !== undefined && !isBytes && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: isBytes ? body : JSON.stringify(body) }),
    })
  }

  const any = (isWanted: (tenant: Tenant) => boolean): Tenant | null => {
    const wanted = tenants.filter(isWanted)
    return wanted[random(wanted.length)] ?? null
  }
  const isPresent = ({ state, authorization }: Tenant) => state === 'present' && authorization !== null

  /** Sends the request that creates a bucket, again for one without a response. */
  async function create(instance: Instance): Promise<void> {
    let tenant = random(2)
      ? any(({ state, isBeingCreated }) => state === 'unknown-creation' && !isBeingCreated)
      : null
    if (tenant === null) {
      // Names of deleted buckets are used again.
      const deleted = any(({ state, name }) => state === 'deleted' && nameIsFree(name))
      const name = random(2) && deleted !== null ? deleted.name : `tenant-${randomUUID().slice(0, 13)}`
      tenant = {
        ...{ name, key: randomUUID(), maxItems: 5 + random(20), authorization: null, state: 'absent' },
        isBeingCreated: false,
        ...{ trashDays: 0, trashDaysIfChanged: null, items: new Map(), objects: new Map(), paths: [] },
      }
      tenants.push(tenant)
    }
    await sendCreation(instance, tenant)
  }

  const nameIsFree = (name: string) => tenants.every((one) => one.name !== name || one.state === 'deleted')

  async function sendCreation(instance: Instance, tenant: Tenant): Promise<void> {
    tenant.state = 'unknown-creation'
    tenant.isBeingCreated = true
    try {
      await sendCreationOnce(instance, tenant)
    } finally {
      tenant.isBeingCreated = false
    }
  }

  async function sendCreationOnce(instance: Instance, tenant: Tenant): Promise<void> {
    const token = { scopes: ['media:read', 'media:write', 'media:delete'] }
    const body = { name: tenant.name, max_items: tenant.maxItems, token }
    const response = await send(instance, 'POST', '/api/buckets', manager, body, {
      'idempotency-key': tenant.key,
    })
    const created = Object(await response.json())
    if (response.status === 201) {
      const authorization = `Bearer ${created.token.token}`
      if (tenant.authorization !== null && tenant.authorization !== authorization)
        fault('halfVisible', `a repetition created another token of ${tenant.name}`)
      tenant.authorization = authorization
      if (tenant.state === 'unknown-creation') tenant.state = 'present'
    } else if (response.status < 500) fault('lost', `${tenant.name} was not created: ${response.status}`)
  }

  async function set(instance: Instance): Promise<void> {
    const tenant = any((one) => isPresent(one) && one.trashDaysIfChanged === null)
    if (tenant === null) return
    const days = random(5)
    tenant.trashDaysIfChanged = days
    const path = `/api/buckets/${tenant.name}`
    const response = await send(instance, 'PATCH', path, manager, { trash_days: days })
    await response.arrayBuffer()
    if (response.status === 200) tenant.trashDays = days
    if (response.status === 200 || response.status === 404) tenant.trashDaysIfChanged = null
  }

  async function upload(instance: Instance): Promise<void> {
    const tenant = any(isPresent)
    if (tenant === null) return create(instance)
    // Some are stored with their rows, and others as files.
    const bytes = randomBytes(random(2) ? 1 + random(1_000) : 70_000 + random(50_000))
    const response = await send(instance, 'POST', '/api/media', tenant.authorization, bytes)
    const stored = Object(await response.json())
    if (response.status === 201) {
      tenant.items.set(stored.id, sha256Of(bytes))
      tenant.paths.push(new URL(stored.url).pathname)
    } else if (response.status === 401 || response.status === 404)
      requireEnding(tenant, 'an upload was refused')
  }

  async function putObject(instance: Instance): Promise<void> {
    const tenant = any(isPresent)
    if (tenant === null) return create(instance)
    const [key, body] = [`key-${randomUUID()}`, randomBytes(random(2) ? 1 + random(1_000) : 70_000)]
    const { status } = await new Door(pair, tenant.name).send(instance, 'PUT', key, { body })
    if (status === 200) tenant.objects.set(key, sha256Of(body))
    else if (status === 404) requireEnding(tenant, 'an object was refused')
  }

  /** By the S3 protocol, only an empty bucket is deleted. */
  async function removeEmpty(instance: Instance): Promise<void> {
    const tenant = any(isPresent)
    if (tenant === null || tenants.filter(isPresent).length < 3) return
    const stored = () => tenant.items.size + tenant.objects.size
    const mayBeEmpty = stored() === 0
    if (mayBeEmpty) tenant.state = 'unknown-deletion'
    const { status, code } = await new Door(pair, tenant.name).send(instance, 'DELETE', null)
    if (status === 204 && stored() > 0) fault('lost', `${tenant.name} has items, and was deleted as empty`)
    if (status === 204 || status === 404) tenant.state = 'deleted'
    else if (code === 'BucketNotEmpty' && mayBeEmpty) tenant.state = 'present'
  }

  /** Another client may have deleted it. */
  function requireEnding(tenant: Tenant, what: string): void {
    if (tenant.state === 'present') fault('lost', `${what} in ${tenant.name}, which was not deleted`)
  }

  async function page(instance: Instance): Promise<void> {
    const tenant = any(isPresent)
    if (tenant === null) return
    const acknowledged = tenant.items.size + tenant.objects.size
    const response = await send(instance, 'GET', '/api/media', tenant.authorization)
    const listed = Object(await response.json())
    if (response.status === 200) {
      if (listed.total < acknowledged)
        fault('lost', `${tenant.name} lists ${listed.total} of ${acknowledged} items`)
    } else if (response.status < 500) requireEnding(tenant, 'a page was refused')
  }

  async function list(instance: Instance): Promise<void> {
    const orders = ['name', 'bytes', 'items', 'created-desc']
    const path = `/api/buckets?limit=500&order=${orders[random(orders.length)]}`
    const before = tenants.filter(isPresent).map(({ name }) => name)
    const response = await send(instance, 'GET', path, manager)
    const { data } = Object(await response.json())
    if (response.status !== 200) return
    const names = new Set(data.map(({ name }: { readonly name: string }) => name))
    for (const name of before)
      if (!names.has(name) && tenants.some((one) => one.name === name && one.state === 'present'))
        fault('lost', `${name} is not listed`)
  }

  async function remove(instance: Instance): Promise<void> {
    const tenant = any(isPresent)
    if (tenant === null || tenants.filter(isPresent).length < 3) return
    await sendDeletion(instance, tenant)
  }

  async function sendDeletion(instance: Instance, tenant: Tenant): Promise<void> {
    tenant.state = 'unknown-deletion'
    const path = `/api/buckets/${tenant.name}?items=delete`
    const response = await send(instance, 'DELETE', path, manager)
    await response.arrayBuffer()
    if (response.status !== 204 && response.status !== 404) return
    tenant.state = 'deleted'
    // At once.
    const refused = await send(instance, 'GET', '/api/media', tenant.authorization)
    await refused.arrayBuffer()
    if (refused.status === 200) fault('returned', `the token of ${tenant.name} works after its deletion`)
    await checkGone(instance, tenant, 3)
  }

  async function checkGone(instance: Instance, { name, paths }: Tenant, atMost: number): Promise<void> {
    for (const path of paths.slice(0, atMost)) {
      const { status } = await fetch(new URL(path, instance.server.url))
      if (status !== 404 && status < 500)
        fault('returned', `${path} of the deleted ${name} has status ${status}`)
    }
  }

  async function checkPresent(instance: Instance, tenant: Tenant): Promise<void> {
    const { name, items, objects, trashDays, trashDaysIfChanged } = tenant
    const response = await send(instance, 'GET', `/api/buckets/${name}`, manager)
    const bucket = Object(await response.json())
    if (response.status !== 200) return fault('lost', `${name} has status ${response.status}`)
    if (bucket.max_items !== tenant.maxItems) fault('lost', `${name} has other settings`)
    if (bucket.trash_days !== trashDays && bucket.trash_days !== trashDaysIfChanged)
      fault('lost', `${name} has ${bucket.trash_days} days of trash, not ${trashDays}`)
    tenant.trashDays = bucket.trash_days
    tenant.trashDaysIfChanged = null
    const stored = items.size + objects.size
    if (bucket.items < stored || bucket.items > tenant.maxItems)
      fault('lost', `${name} has ${bucket.items} items; ${stored} were acknowledged, of ${tenant.maxItems}`)
    for (const [key, sha256] of objects) {
      const { bytes, status } = await new Door(pair, name).send(instance, 'GET', key)
      if (sha256Of(bytes) !== sha256) fault('lost', `${key} of ${name} has status ${status}`)
    }
    for (const [id, sha256] of items) {
      const shown = await send(instance, 'GET', `/api/media/${id}`, tenant.authorization)
      const item = Object(await shown.json())
      if (item.sha256 !== sha256) fault('lost', `${id} of ${name} has status ${shown.status}`)
      const path = tenant.paths[[...items.keys()].indexOf(id)] ?? ''
      const bytes = await fetch(new URL(path, instance.server.url))
      if (sha256Of(new Uint8Array(await bytes.arrayBuffer())) !== sha256)
        fault('lost', `the bytes of ${id} of ${name} differ`)
    }
  }

  const kinds = [create, set, upload, upload, upload, putObject, page, list, remove, removeEmpty]
  return {
    async workUntilGone(instance, count) {
      const { process } = instance.server
      await Promise.all(
        Array.from({ length: count }, async () => {
          while (process.signalCode === null && process.exitCode === null)
            await kinds[random(kinds.length)]?.(instance).catch(() => undefined)
        }),
      )
    },

    async check(instance) {
      // A repetition settles each request without a response.
      for (const tenant of tenants) {
        if (tenant.state === 'unknown-creation') await sendCreation(instance, tenant)
        if (tenant.state === 'unknown-deletion') await sendDeletion(instance, tenant)
      }
      for (const tenant of tenants)
        if (tenant.state === 'present') await checkPresent(instance, tenant)
        else if (tenant.state === 'deleted') await checkGone(instance, tenant, Number.POSITIVE_INFINITY)
      const response = await send(instance, 'GET', '/api/buckets?name=tenant-&limit=500', manager)
      const { data, totals } = Object(await response.json())
      const expected = tenants.flatMap(({ name, state }) => (state === 'present' ? [name] : []))
      const listed = data.map(({ name }: { readonly name: string }) => name)
      if (`${listed}` !== `${expected.toSorted()}` || totals.buckets !== expected.length)
        fault('halfVisible', `the list has ${listed}, not ${expected.toSorted()}`)
    },

    async removed(_instance, rowsOf) {
      await until('the removal of what deleted buckets held', async () => {
        const rows = await rowsOf(`SELECT id FROM buckets WHERE private = 2`)
        return rows.length === 0
      })
      const present = tenants.filter(({ state }) => state === 'present').length
      const [row] = await rowsOf(
        `SELECT count(*) AS count FROM buckets WHERE id > 0 AND name LIKE 'tenant-%'`,
      )
      if (Number(row?.['count']) !== present)
        fault('halfVisible', `the catalog has ${row?.['count']} buckets, not ${present}`)
      const marks = await rowsOf(`SELECT key FROM meta WHERE key LIKE 'deleting %'`)
      if (marks.length > 0) fault('halfVisible', `${marks.length} leases of removals remain`)
    },
  }
}
