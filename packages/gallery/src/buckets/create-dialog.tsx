import type { CreatedToken } from '@mediabucket/client'
import { maxTokenName } from '@mediabucket/client/rules'
import { useRef, useState } from 'preact/hooks'
import { ActionDialog } from '../components/action-dialog.tsx'
import { useService } from '../gallery-context.ts'
import { strings } from '../strings.ts'
import { ExpiryField, inDays, S3Field, wantsS3 } from '../tokens/token-dialogs.tsx'
import { PictureFields } from './picture-fields.tsx'
import { LimitFields, MoreFields } from './setting-fields.tsx'
import { changesOf, noSettings, type SettingFields } from './settings.ts'
import { areSizesRight } from './sizes.ts'

/** The scopes that a token of a bucket can have. The first token may have all of them (docs/interface.md BK4). */
const bucketScopes = ['media:read', 'media:write', 'media:delete', 'tokens:manage', 'webhooks:manage']
const usualScopes = ['media:read', 'media:write', 'media:delete']

/** A request that may have had no response. */
interface Attempt {
  /** What was typed. */
  readonly body: string
  readonly key: string
  readonly expiresAt: Date | undefined
}

interface CreateDialogProps {
  readonly onClose: () => void
  readonly onCreated: (bucket: string, token: CreatedToken | null) => void
}

/** Asks for the properties of a new bucket and of its first token. */
export function CreateDialog({ onClose, onCreated }: CreateDialogProps) {
  const { buckets, connection, list } = useService()
  const [values, setValues] = useState(noSettings)
  const [withToken, setWithToken] = useState(true)
  const [showsMistakes, setShowsMistakes] = useState(false)
  /** The last request, so that one that got no response is repeated with its key. */
  const last = useRef<Attempt | null>(null)
  const texts = strings.buckets
  const nameOf = (fields: FormData) => `${fields.get('name') ?? ''}`.trim()

  function check(fields: FormData): string | null {
    if (!/^[a-z0-9][a-z0-9-]{0,62}$/.test(nameOf(fields))) return texts.wrongName
    const isRight = areSizesRight(values.variants)
    setShowsMistakes(!isRight)
    if (!isRight) return texts.pictures.wrongSizes
    return withToken && fields.getAll('scope').length === 0 ? strings.tokens.noScope : null
  }

  async function create(fields: FormData): Promise<void> {
    const name = nameOf(fields)
    const days = Number(fields.get('days'))
    const bucket = { name, ...changesOf(noSettings, values) }
    const token = {
      name: `${fields.get('token-name') ?? ''}`.trim(),
      scopes: fields.getAll('scope').map(String),
      s3: wantsS3(fields),
    }
    const body = JSON.stringify([bucket, withToken && token, days])
    // The expiry is counted from the first request, because a repetition must be equal.
    if (last.current?.body !== body)
      last.current = {
        body,
        key: `gallery-${Date.now()}-${Math.random()}`,
        expiresAt: inDays(days) ?? undefined,
      }
    const { key, expiresAt } = last.current
    const created = await connection.watch(() =>
      buckets.create(withToken ? { ...bucket, token: { ...token, expiresAt } } : bucket, {
        idempotencyKey: key,
      }),
    )
    void list.refresh()
    onCreated(name, created.token)
  }

  const props = {
    values,
    showsMistakes,
    onChange: (change: Partial<SettingFields>) => setValues((before) => ({ ...before, ...change })),
  }
  return (
    <ActionDialog title={texts.create} label={texts.create} onClose={onClose} check={check} act={create}>
      <div>
        <label>
          {texts.name}
          <input
            type="text"
            name="name"
            maxLength={63}
            autocapitalize="none"
            autocomplete="off"
            spellcheck={false}
            aria-describedby="bucket-name-hint"
          />
        </label>
        <p id="bucket-name-hint" class="small">
          {texts.nameHint}
        </p>
      </div>
      <LimitFields {...props} />
      <details class="form-more">
        <summary>{texts.moreSettings}</summary>
        <MoreFields {...props} />
        <PictureFields {...props} />
      </details>
      <label class="token-scope">
        <input
          type="checkbox"
          checked={withToken}
          onChange={({ currentTarget }) => setWithToken(currentTarget.checked)}
        />
        {texts.withToken}
      </label>
      {withToken && (
        <>
          <label>
            {texts.tokenName}
            <input type="text" name="token-name" maxLength={maxTokenName} autocomplete="off" />
          </label>
          <fieldset>
            <legend>{strings.tokens.scopes}</legend>
            {bucketScopes.map((scope) => (
              <label key={scope} class="token-scope">
                <input
                  type="checkbox"
                  name="scope"
                  value={scope}
                  defaultChecked={usualScopes.includes(scope)}
                />
                {strings.tokens.scopeNames[scope] ?? scope}
              </label>
            ))}
          </fieldset>
          <ExpiryField selected={0} />
          <S3Field />
        </>
      )}
    </ActionDialog>
  )
}
