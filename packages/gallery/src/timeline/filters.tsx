import type { LabelKey } from '@mediabucket/client'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Choice } from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery-context.ts'
import { noChoice, wordsOf } from '../router.ts'
import { strings } from '../strings.ts'
import { byOtherTime, isByTaken, isFiltered } from './shown-list.ts'

/** A search begins when nothing was typed for this time. Milliseconds. */
const searchDelay = 200

/** Controls that select the items of the timeline. */
export function Filters() {
  const { router, shownList } = useGallery()
  const { kind, time, name, label } = router.list.value
  const input = useRef<HTMLInputElement>(null)
  /** Whether small screens show the choices. */
  const [open, setOpen] = useState(
    kind !== noChoice.kind || time !== noChoice.time || label !== noChoice.label,
  )
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  /** The words that this field has searched for. Others come from the address. */
  const searched = useRef('')
  useEffect(() => {
    if (input.current && name !== searched.current) input.current.value = name
    searched.current = name
  }, [name])
  useEffect(() => () => clearTimeout(timer.current), [])
  const search = (words: string) => {
    const { name } = router.list.peek()
    if (words === name) return
    searched.current = words
    // While a person types, Back does not lead to each part of the text.
    shownList.choose({ name: words }, name !== '' && words !== '')
  }
  return (
    <search class={open ? 'filters open' : 'filters'} aria-label={strings.filter.label}>
      <div class="search">
        <Icon name="search" />
        <input
          ref={input}
          type="search"
          autocomplete="off"
          maxLength={200}
          aria-label={strings.filter.search}
          placeholder={strings.filter.search}
          onInput={({ currentTarget }) => {
            clearTimeout(timer.current)
            const words = wordsOf(currentTarget.value)
            timer.current = setTimeout(() => search(words), searchDelay)
          }}
        />
      </div>
      <button
        type="button"
        class="icon-button filter-switch"
        aria-label={strings.filter.label}
        title={strings.filter.label}
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <Icon name="filter" />
      </button>
      <Choice
        quiet
        label={strings.filter.kind}
        options={strings.filter.kinds}
        value={kind}
        onChoose={(chosen) => shownList.choose({ kind: chosen })}
      />
      <Choice
        quiet
        label={strings.filter.time}
        options={strings.filter.times}
        value={time}
        onChoose={(chosen) => shownList.choose({ time: chosen })}
      />
      <TimeChoice />
      <LabelFilter />
      {isFiltered(shownList.filter.value) && (
        <button
          type="button"
          class="button small quiet"
          onClick={() => {
            clearTimeout(timer.current)
            if (input.current) input.current.value = ''
            searched.current = ''
            const { kind, time, name, label } = noChoice
            shownList.choose({ kind, time, name, label })
          }}
        >
          <Icon name="close" size={16} />
          {strings.filter.clear}
        </button>
      )}
    </search>
  )
}

/** Chooses the time by which the list is ordered and grouped. */
function TimeChoice() {
  const { shownList } = useGallery()
  const order = shownList.order.value
  const chosen = isByTaken(order) ? 'taken' : 'added'
  return (
    <Choice
      quiet
      label={strings.timeline.orderBy}
      options={strings.timeline.orderTimes}
      value={chosen}
      onChoose={(next) => {
        if (next !== chosen) shownList.choose({ order: byOtherTime(order) })
      }}
    />
  )
}

/** Values of each key that can be chosen: the most frequent ones. */
const shownValues = 50

/** Selects a label. Not shown while the files have none. */
function LabelFilter() {
  const { client, router, shownList, isShown, edits } = useGallery()
  const { label } = router.list.value
  const [keys, setKeys] = useState<readonly LabelKey[]>([])
  const shown = isShown.value
  const changes = edits.labelChanges.value
  useEffect(() => {
    // Pictures are requested first. An earlier version of the service has no labels.
    if (!shown) return
    let unmounted = false
    client.labels({ limit: shownValues }).then(
      (found) => {
        if (!unmounted) setKeys(found)
      },
      () => undefined,
    )
    return () => {
      unmounted = true
    }
  }, [shown, changes])
  const labels = keys.flatMap(({ key, values }) => values.map(({ value }) => `${key}=${value}`))
  if (labels.length === 0 && label === noChoice.label) return null
  const options = Object.fromEntries([
    [noChoice.label, strings.filter.anyLabel],
    ...[...new Set([...(label === noChoice.label ? [] : [label]), ...labels])].map((text) => [text, text]),
  ])
  return (
    <Choice
      quiet
      label={strings.filter.byLabel}
      options={options}
      value={label}
      onChoose={(chosen) => shownList.choose({ label: chosen })}
    />
  )
}
