import type { CreatedToken, ManagedToken } from '@mediabucket/client'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { LoadError, SectionHead } from '../components/section.tsx'
import { formatSize, formatTime } from '../format.ts'
import { useBucket } from '../gallery-context.ts'
import { limitTexts } from '../limit-texts.ts'
import { strings } from '../strings.ts'
import { AskDialogs, LinkDialog } from './ask-dialogs.tsx'
import { CreateDialog, NewTokenDialog, RevokeDialog, RotateDialog } from './token-dialogs.tsx'
import { isActive, isLink, isUser } from './token-kinds.ts'
import { createTokens } from './tokens.ts'

type Dialog =
  | { readonly kind: 'create' | 'ask' }
  | { readonly kind: 'rotate' | 'revoke'; readonly token: ManagedToken }
  | { readonly kind: 'secret' | 'link'; readonly created: CreatedToken }

/** The tokens of the bucket, for tokens with `tokens:manage`. */
export function TokensView() {
  const { client, connection } = useBucket()
  const tokens = useMemo(() => createTokens(client, connection), [client, connection])
  const [dialog, setDialog] = useState<Dialog | null>(null)
  useEffect(() => void tokens.reload(), [tokens])
  const items = tokens.items.value
  const error = tokens.error.value
  const dialogProps = {
    tokens,
    onClose: () => setDialog(null),
    onCreated: (created: CreatedToken) => setDialog({ kind: 'secret', created }),
  }
  return (
    <>
      <SectionHead title={strings.sections.tokens} about={strings.tokens.about}>
        <button type="button" class="button small primary" onClick={() => setDialog({ kind: 'ask' })}>
          {strings.listing.ask}
        </button>
        <button type="button" class="button small" onClick={() => setDialog({ kind: 'create' })}>
          {strings.tokens.create}
        </button>
      </SectionHead>
      <p class="off-screen" role="status">
        {items === null && error === null && strings.tokens.loading}
      </p>
      {error !== null && (
        <LoadError title={strings.tokens.failedToLoad} reason={error} onRetry={() => void tokens.reload()} />
      )}
      {items !== null && (
        <ul class="token-list" aria-label={strings.sections.tokens}>
          {items.map((token) => (
            <TokenRow key={token.id} token={token} onAct={(kind) => setDialog({ kind, token })} />
          ))}
        </ul>
      )}
      {tokens.hasMore.value && (
        <button type="button" class="button" onClick={() => void tokens.loadMore()}>
          {strings.tokens.more}
        </button>
      )}
      {dialog?.kind === 'create' && <CreateDialog {...dialogProps} />}
      {dialog?.kind === 'ask' && (
        <AskDialogs onClose={() => setDialog(null)} onCreated={() => void tokens.reload()} />
      )}
      {dialog?.kind === 'link' && (
        <LinkDialog secret={dialog.created.token} onClose={() => setDialog(null)} />
      )}
      {dialog?.kind === 'rotate' && (
        <RotateDialog
          {...dialogProps}
          token={dialog.token}
          onCreated={(created) => setDialog({ kind: isLink(created) ? 'link' : 'secret', created })}
        />
      )}
      {dialog?.kind === 'revoke' && <RevokeDialog {...dialogProps} token={dialog.token} />}
      {dialog?.kind === 'secret' && (
        <NewTokenDialog created={dialog.created} onClose={() => setDialog(null)} />
      )}
    </>
  )
}

interface TokenRowProps {
  readonly token: ManagedToken
  readonly onAct: (kind: 'rotate' | 'revoke') => void
}

function TokenRow({ token, onAct }: TokenRowProps) {
  const { tokenInfo } = useBucket()
  const active = isActive(token)
  const name = token.name || strings.tokens.unnamed
  const scopes = token.scopes.map((scope) => strings.tokens.scopeNames[scope] ?? scope).join(', ')
  const labelled = (action: string) => `${action}: ${name}`
  return (
    <li data-id={token.id} class={active ? '' : 'inactive'}>
      <div class="token-about">
        <p class="token-name">
          <bdi>{name}</bdi>
          {isLink(token) && <span class="badge">{strings.links.badge}</span>}
          {token.id === tokenInfo.id && <span class="badge">{strings.tokens.own}</span>}
          {!active && (
            <span class="badge">
              {token.revoked_at === null ? strings.tokens.expired : strings.tokens.revoked}
            </span>
          )}
        </p>
        <p class="muted">{isUser(token) ? strings.tokens.user : isLink(token) ? received(token) : scopes}</p>
        {token.limits !== null && (
          <p class="muted">{limitTexts({ ...token, expires_at: null }).join(' · ')}</p>
        )}
      </div>
      <dl class="token-times">
        <Time label={strings.tokens.createdAt} time={token.created_at} />
        <Time label={strings.tokens.lastUsed} time={token.last_used_at} />
        {!isUser(token) && <Time label={strings.tokens.expires} time={token.expires_at} />}
      </dl>
      <div class="token-actions">
        {active && !isUser(token) && (
          <button
            type="button"
            class="button small"
            aria-label={labelled(strings.tokens.rotate)}
            onClick={() => onAct('rotate')}
          >
            {strings.tokens.rotate}
          </button>
        )}
        {active && (
          <button
            type="button"
            class="button small bad"
            aria-label={labelled(strings.tokens.revoke)}
            onClick={() => onAct('revoke')}
          >
            {strings.tokens.revoke}
          </button>
        )}
      </div>
    </li>
  )
}

const received = ({ uploaded }: ManagedToken): string =>
  strings.links.received(uploaded?.items ?? 0, formatSize(uploaded?.bytes ?? 0))

function Time({ label, time }: { label: string; time: string | null }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{time === null ? strings.tokens.never : <time dateTime={time}>{formatTime(time)}</time>}</dd>
    </div>
  )
}
