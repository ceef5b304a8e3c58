import type { Webhook, WebhookDelivery } from '@mediabucket/client'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { LoadError, SectionHead } from '../components/section.tsx'
import { formatTime } from '../format.ts'
import { useBucket } from '../gallery-context.ts'
import { errorMessage } from '../service/connection.ts'
import { strings } from '../strings.ts'
import { CreateDialog, DeleteDialog, NewSecretDialog, RotateDialog } from './webhook-dialogs.tsx'
import { createWebhooks, type Webhooks } from './webhooks.ts'

type Dialog =
  | { readonly kind: 'create' }
  | { readonly kind: 'rotate' | 'delete'; readonly webhook: Webhook }
  | { readonly kind: 'secret'; readonly secret: string }

/** The webhooks of the bucket, for tokens with `webhooks:manage`. */
export function WebhooksView() {
  const { client, connection } = useBucket()
  const webhooks = useMemo(() => createWebhooks(client, connection), [client, connection])
  const [dialog, setDialog] = useState<Dialog | null>(null)
  const [notice, setNotice] = useState('')
  useEffect(() => void webhooks.reload(), [webhooks])
  const items = webhooks.items.value
  const error = webhooks.error.value
  const dialogProps = {
    webhooks,
    onClose: () => setDialog(null),
    onSecret: (secret: string) => setDialog({ kind: 'secret', secret }),
  }
  return (
    <>
      <SectionHead title={strings.sections.webhooks} about={strings.webhooks.about}>
        <button type="button" class="button small primary" onClick={() => setDialog({ kind: 'create' })}>
          {strings.webhooks.create}
        </button>
      </SectionHead>
      <p class="message" role="status">
        {items === null && error === null ? strings.webhooks.loading : notice}
      </p>
      {error !== null && (
        <LoadError
          title={strings.webhooks.failedToLoad}
          reason={error}
          onRetry={() => void webhooks.reload()}
        />
      )}
      {items?.length === 0 && <p class="muted">{strings.webhooks.none}</p>}
      {items !== null && items.length > 0 && (
        <ul class="token-list" aria-label={strings.sections.webhooks}>
          {items.map((webhook) => (
            <WebhookRow
              key={webhook.id}
              webhook={webhook}
              webhooks={webhooks}
              onNotice={setNotice}
              onAsk={(kind) => setDialog({ kind, webhook })}
            />
          ))}
        </ul>
      )}
      {dialog?.kind === 'create' && <CreateDialog {...dialogProps} />}
      {dialog?.kind === 'rotate' && <RotateDialog {...dialogProps} webhook={dialog.webhook} />}
      {dialog?.kind === 'delete' && <DeleteDialog {...dialogProps} webhook={dialog.webhook} />}
      {dialog?.kind === 'secret' && (
        <NewSecretDialog secret={dialog.secret} onClose={() => setDialog(null)} />
      )}
    </>
  )
}

interface WebhookRowProps {
  readonly webhook: Webhook
  readonly webhooks: Webhooks
  readonly onNotice: (text: string) => void
  readonly onAsk: (kind: 'rotate' | 'delete') => void
}

/** A button of a webhook. */
interface Action {
  readonly text: string
  readonly bad?: boolean
  readonly run: () => void
  readonly 'aria-disabled'?: boolean
  readonly 'aria-expanded'?: boolean
}

function WebhookRow({ webhook, webhooks, onNotice, onAsk }: WebhookRowProps) {
  const { id, url, kinds, batch, state, failures, next_attempt_at: next } = webhook
  const texts = strings.webhooks
  const [busy, setBusy] = useState(false)
  const isOn = state === 'on'
  const isOpen = webhooks.opened.value === id
  const menu = useRef<HTMLDivElement>(null)
  const menuId = `webhook-menu-${id}`
  const labelled = (action: string) => `${action}: ${url}`
  async function act(action: () => Promise<string>): Promise<void> {
    if (busy) return
    setBusy(true)
    onNotice('')
    onNotice(await action().catch(errorMessage))
    setBusy(false)
  }
  const test = async () => resultOf(await webhooks.test(id))
  const toggle = async () => {
    await webhooks.update(id, { state: isOn ? 'off' : 'on' })
    return ''
  }
  const actions: readonly Action[] = [
    { text: texts.test, run: () => void act(test), 'aria-disabled': busy },
    {
      text: texts.deliveries,
      run: () => void webhooks.open(isOpen ? null : id),
      'aria-expanded': isOpen,
    },
    { text: isOn ? texts.switchOff : texts.switchOn, run: () => void act(toggle) },
    { text: texts.rotate, run: () => onAsk('rotate') },
    { text: texts.delete, run: () => onAsk('delete'), bad: true },
  ]
  return (
    <li data-id={id} class={isOn ? 'webhook' : 'webhook inactive'}>
      <div class="token-about">
        <p class="token-name">
          {url}
          {!isOn && <span class="badge">{texts.states[state] ?? state}</span>}
        </p>
        <p class="muted">
          {kinds.length === 0
            ? texts.allKinds
            : kinds.map((kind) => texts.kindNames[kind] ?? kind).join(', ')}
          {batch > 1 && ` · ${texts.upTo(batch)}`}
        </p>
        {failures > 0 && (
          <p class="message bad">
            {texts.failing(failures)} {isOn && next !== null && texts.nextAttempt(formatTime(next))}
          </p>
        )}
      </div>
      <button
        type="button"
        class="button small webhook-menu-button"
        popovertarget={menuId}
        aria-label={labelled(texts.actions)}
      >
        {texts.actions}
        <Icon name="down" size={16} />
      </button>
      {/* A menu on phones, a row of buttons elsewhere. */}
      <div ref={menu} id={menuId} class="token-actions menu webhook-menu" popover="auto">
        {actions.map(({ text, bad = false, run, ...attributes }) => (
          <button
            key={text}
            type="button"
            class={bad ? 'button small bad' : 'button small'}
            aria-label={labelled(text)}
            {...attributes}
            onClick={() => {
              menu.current?.hidePopover()
              run()
            }}
          >
            {text}
          </button>
        ))}
      </div>
      {isOpen && (
        <DeliveryList
          deliveries={webhooks.deliveries.value}
          onRepeat={(number) => void act(async () => resultOf(await webhooks.redeliver(id, number)))}
        />
      )}
    </li>
  )
}

/** What a delivery that somebody has asked for has come to. */
const resultOf = ({ delivered, status, reason }: WebhookDelivery): string =>
  delivered ? strings.webhooks.delivered(status ?? 0) : strings.webhooks.notDelivered(reason ?? '')

interface DeliveryListProps {
  readonly deliveries: readonly WebhookDelivery[] | null
  readonly onRepeat: (number: number) => void
}

function DeliveryList({ deliveries, onRepeat }: DeliveryListProps) {
  const texts = strings.webhooks
  if (deliveries === null || deliveries.length === 0)
    return <p class="muted deliveries">{deliveries === null ? texts.loading : texts.noDeliveries}</p>
  return (
    <div class="deliveries">
      <table>
        <thead>
          <tr>
            {[texts.time, texts.type, texts.status, texts.duration, texts.response].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
            <td />
          </tr>
        </thead>
        <tbody>
          {deliveries.map((delivery) => (
            <tr key={delivery.number} class={delivery.delivered ? '' : 'bad'}>
              <td data-title={texts.time}>
                <time dateTime={delivery.time}>{formatTime(delivery.time)}</time>
              </td>
              <td data-title={texts.type}>
                {delivery.type}
                {delivery.changes > 1 && ` (${delivery.changes})`}
              </td>
              <td data-title={texts.status}>{delivery.status ?? '–'}</td>
              <td data-title={texts.duration}>{delivery.duration} ms</td>
              <td class="excerpt" data-title={texts.response}>
                {delivery.response || delivery.reason}
              </td>
              <td>
                <button
                  type="button"
                  class="button small"
                  aria-label={`${texts.repeat}: ${delivery.number}`}
                  onClick={() => onRepeat(delivery.number)}
                >
                  {texts.repeat}
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
