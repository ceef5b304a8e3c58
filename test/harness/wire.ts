import { type TSchema, Type } from 'typebox'
import { Compile } from 'typebox/compile'

// The schemas of responses, independent of the service's code, so that a change of the format fails the tests.

/**
 * A function that returns a value if it has the schema, and throws otherwise. Compiled at its first use: some tests read tens of thousands
 * of items.
 */
function readerOf<Schema extends TSchema>(schema: Schema) {
  const compile = () => Compile(schema)
  let validator: ReturnType<typeof compile> | undefined
  return (value: unknown) => {
    validator ??= compile()
    return validator.Parse(value)
  }
}

const UrlOrNull = Type.Union([Type.String(), Type.Null()])
const CountOrNull = Type.Union([Type.Integer(), Type.Null()])
const closed = { additionalProperties: false }

const Page = Type.Object(
  {
    current_page: Type.Integer(),
    data: Type.Array(Type.String(), { maxItems: 10 }),
    first_page_url: Type.String(),
    from: CountOrNull,
    last_page: Type.Integer(),
    last_page_url: Type.String(),
    links: Type.Array(Type.Object({ url: UrlOrNull, label: Type.String(), active: Type.Boolean() }, closed)),
    next_page_url: UrlOrNull,
    path: Type.String(),
    per_page: Type.Literal(10),
    prev_page_url: UrlOrNull,
    to: CountOrNull,
    total: Type.Integer(),
  },
  closed,
)

const Dimensions = Type.Object({ width: Type.Integer(), height: Type.Integer() }, closed)

const Item = Type.Object(
  {
    id: Type.String(),
    url: Type.String(),
    filename: Type.Union([Type.String(), Type.Null()]),
    content_type: Type.String(),
    size: Type.Integer(),
    sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    created_at: Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$' }),
    expires_at: Type.Union([
      Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$' }),
      Type.Null(),
    ]),
    width: CountOrNull,
    height: CountOrNull,
    alt_text: Type.Union([Type.String(), Type.Null()]),
    caption: Type.Union([Type.String(), Type.Null()]),
    labels: Type.Record(Type.String(), Type.String()),
    path: Type.Union([Type.String(), Type.Null()]),
    focus: Type.Union([Type.Object({ x: Type.Number(), y: Type.Number() }, closed), Type.Null()]),
    taken_at: Type.Union([Type.String(), Type.Null()]),
    thumbhash: Type.Union([Type.String(), Type.Null()]),
    duration: Type.Union([Type.Number(), Type.Null()]),
    variants: Type.Union([
      Type.Object({ thumb: Type.String(), medium: Type.String() }, { additionalProperties: Type.String() }),
      Type.Null(),
    ]),
    variant_sizes: Type.Union([
      Type.Object({ thumb: Dimensions, medium: Dimensions }, { additionalProperties: Dimensions }),
      Type.Null(),
    ]),
    // Only in lists that ask for it.
    key: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  },
  closed,
)

const timeText = Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$' })
const TimeOrNull = Type.Union([timeText, Type.Null()])
const tokenMembers = {
  id: Type.String(),
  name: Type.String(),
  bucket: Type.String(),
  scopes: Type.Array(Type.String()),
  created_at: timeText,
  expires_at: TimeOrNull,
  note: Type.Union([Type.String(), Type.Null()]),
  limits: Type.Union([
    Type.Object(
      {
        max_items: CountOrNull,
        max_bytes: CountOrNull,
        max_file_size: CountOrNull,
        types: Type.Union([Type.Array(Type.String()), Type.Null()]),
        item_days: CountOrNull,
        labels: Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()]),
      },
      closed,
    ),
    Type.Null(),
  ]),
  uploaded: Type.Union([Type.Object({ items: Type.Integer(), bytes: Type.Integer() }, closed), Type.Null()]),
  left: Type.Union([Type.Object({ items: CountOrNull, bytes: CountOrNull }, closed), Type.Null()]),
}
const Token = Type.Object(tokenMembers, closed)
const CreatedToken = Type.Object(
  {
    ...tokenMembers,
    token: Type.String({ pattern: '^mbkt_' }),
    access_key_id: Type.Optional(Type.String()),
    secret_access_key: Type.Optional(Type.String()),
  },
  closed,
)
const TokenList = Type.Object(
  {
    data: Type.Array(
      Type.Object({ ...tokenMembers, last_used_at: TimeOrNull, revoked_at: TimeOrNull }, closed),
    ),
    next_cursor: Type.Union([Type.String(), Type.Null()]),
  },
  closed,
)

const texts = Type.Optional(Type.Array(Type.String()))
const number = Type.Optional(Type.Number())
const faultMembers = {
  ...{ accepted: texts, members: texts, missing: texts, reasons: texts },
  source_status: Type.Optional(Type.Integer()),
  ...{ minimum: number, maximum: number, left: number, unit: Type.Optional(Type.String()) },
}
const Problem = Type.Object(
  {
    ...faultMembers,
    type: Type.String({ pattern: '^https?://.+/problems/[a-z0-9-]+$' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    instance: Type.String(),
    code: Type.String(),
    errors: Type.Optional(
      Type.Array(Type.Object({ parameter: Type.String(), detail: Type.String(), ...faultMembers }, closed), {
        minItems: 1,
      }),
    ),
  },
  closed,
)

const pageOf = readerOf(Page)
const wrappedPageOf = readerOf(Type.Object({ data: Page }, closed))
const itemOf = readerOf(Item)
const storedItemsOf = readerOf(Type.Object({ data: Type.Array(Item) }, closed))
const deletedOf = readerOf(
  Type.Object({ deleted: Type.Array(Type.String()), missing: Type.Array(Type.String()) }, closed),
)
const restoredOf = readerOf(
  Type.Object({ restored: Type.Array(Type.String()), missing: Type.Array(Type.String()) }, closed),
)
const trashOf = readerOf(
  Type.Object(
    {
      data: Type.Array(
        Type.Object({ ...Item.properties, deleted_at: Type.String(), expires_at: Type.String() }, closed),
      ),
      next_cursor: UrlOrNull,
    },
    closed,
  ),
)
const Change = Type.Object(
  {
    cursor: Type.String({ pattern: '^[\\w-]+$' }),
    type: Type.String(),
    item_id: Type.String(),
    changed_at: Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$' }),
    item: Type.Union([Item, Type.Null()]),
  },
  closed,
)
const changeOf = readerOf(Change)
const changesOf = readerOf(
  Type.Object({ data: Type.Array(Change), next_cursor: Type.String(), has_more: Type.Boolean() }, closed),
)
const itemsOf = readerOf(Type.Object({ data: Type.Array(Item), next_cursor: UrlOrNull }, closed))
const problemOf = readerOf(Problem)

/** The page object of a response in the bare envelope; throws if it is invalid. */
export const readPage = async (response: Response) => pageOf(await response.json())

/** The page object of a response in the wrapped envelope; throws if it is invalid. */
export const readWrappedPage = async (response: Response) => wrappedPageOf(await response.json()).data

/** The media object of a response. */
export const readItem = async (response: Response) => itemOf(await response.json())

/** The media objects of a response to a form with several files. */
export const readStoredItems = async (response: Response) => storedItemsOf(await response.json()).data

/** The result of a deletion of many items. */
export const readDeleted = async (response: Response) => deletedOf(await response.json())

/** The result of a restore. */
export const readRestored = async (response: Response) => restoredOf(await response.json())

/** The items of a response of `/api/trash`, and its cursor. */
export const readTrash = async (response: Response) => trashOf(await response.json())

/** The items of a response of `/api/items`, and its cursor. */
export const readItems = async (response: Response) => itemsOf(await response.json())

/** The changes of a response of `/api/changes`, and its cursor. */
export const readChanges = async (response: Response) => changesOf(await response.json())

/** The change in a text. */
export const parseChange = (text: string) => changeOf(JSON.parse(text))

/** The problem in a text. */
export const parseProblem = (text: string) => problemOf(JSON.parse(text))

/** The media object in a text. */
export const parseItem = (text: string) => itemOf(JSON.parse(text))

export const readToken = readerOf(Token)
export const readCreatedToken = readerOf(CreatedToken)
export const readTokenList = readerOf(TokenList)

const SignedLink = Type.Object({ url: Type.String(), expires_at: timeText }, closed)
const SignedLinks = Type.Object(
  {
    links: Type.Array(Type.Object({ id: Type.String(), url: Type.String() }, closed)),
    missing: Type.Array(Type.String()),
    expires_at: timeText,
  },
  closed,
)

const linkOf = readerOf(SignedLink)
const linksOf = readerOf(SignedLinks)

/** A link that expires. Throws for any other body. */
export const readLink = async (response: Response) => linkOf(await response.json())
/** Links of several items. Throws for any other body. */
export const readLinks = async (response: Response) => linksOf(await response.json())

const webhookMembers = {
  id: Type.String({ pattern: '^wh_[0-9a-z]{12}$' }),
  url: Type.String(),
  kinds: Type.Array(Type.String()),
  batch: Type.Integer(),
  state: Type.String(),
  created_at: timeText,
  failing_since: Type.Union([timeText, Type.Null()]),
  failures: Type.Integer(),
  next_attempt_at: Type.Union([timeText, Type.Null()]),
}
const Webhook = Type.Object(webhookMembers, closed)
const Delivery = Type.Object(
  {
    number: Type.Integer(),
    message_id: Type.String({ pattern: '^msg_[0-9a-f]{32}$' }),
    type: Type.String(),
    time: timeText,
    duration: Type.Integer(),
    changes: Type.Integer(),
    delivered: Type.Boolean(),
    status: CountOrNull,
    reason: Type.Union([Type.String(), Type.Null()]),
    response: Type.String(),
    requested: Type.Boolean(),
  },
  closed,
)

export const readWebhook = readerOf(Type.Object(webhookMembers))
export const readWebhookList = readerOf(Type.Object({ data: Type.Array(Webhook) }, closed))
export const readCreatedWebhook = readerOf(
  Type.Object({ ...webhookMembers, secret: Type.String({ pattern: '^whsec_[A-Za-z0-9+/]{43}=$' }) }, closed),
)
export const readDelivery = readerOf(Delivery)
export const readDeliveryList = readerOf(Type.Object({ data: Type.Array(Delivery) }, closed))

const Amount = Type.Object({ items: Type.Integer(), bytes: Type.Integer() }, closed)
const usageMembers = {
  day: Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\d$' }),
  is_partial: Type.Boolean(),
  items: Type.Integer(),
  bytes: Type.Integer(),
  added: Amount,
  removed: Amount,
  downloaded_bytes: Type.Integer(),
  requests: Type.Object(
    { list: Type.Integer(), download: Type.Integer(), upload: Type.Integer(), other: Type.Integer() },
    closed,
  ),
}
const Usage = Type.Object(usageMembers, closed)

/** The usage of today of the bucket that a response describes. */
const usageOfBucket = readerOf(Type.Object({ usage_today: Usage }))
export const readUsageToday = async (response: Response) => usageOfBucket(await response.json()).usage_today

export const readBucketUsage = readerOf(
  Type.Object({ bucket: Type.String(), data: Type.Array(Usage) }, closed),
)
export const readServiceUsage = readerOf(
  Type.Object(
    {
      data: Type.Array(
        Type.Object({ bucket: Type.String(), deleted_at: TimeOrNull, ...usageMembers }, closed),
      ),
      next_cursor: Type.Union([Type.String(), Type.Null()]),
    },
    closed,
  ),
)
