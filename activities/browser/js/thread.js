// The conversation as the page shows it: a list of items in order. An item is a container of one message, or a role node
// outside of any container.

const itemsOf = () => {
  const turns = every(document, rules.turns)
  const roles = rules.roles.flatMap((selector) => all(document, selector).filter(shown))
  const both = new Set([...turns, ...roles].filter((element) => !within(element, rules.outside ?? [])))
  const nested = (element) => {
    for (let up = above(element); up; up = above(up)) if (both.has(up)) return true
    return false
  }
  return [...both].filter((element) => !nested(element))
    .sort((a, b) => (a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1))
}

// roleNodes are the nodes of an item that hold one role's text; an item without any is its own.
const roleNodes = (item) => {
  if (hasAny(item, rules.roles)) return [item]
  const nodes = rules.roles.flatMap((selector) => [...item.querySelectorAll(selector)].filter(shown))
  const outer = nodes.filter((node) => !nodes.some((other) => other !== node && other.contains(node)))
  return outer.length > 0 ? outer : [item]
}

const roleOf = (item) => {
  const own = attribute(item, rules.role_attributes)
  if (own) return own
  const nodes = roleNodes(item)
  return nodes[0] === item ? '' : attribute(nodes[0], rules.role_attributes)
}

// is tells whether an item has a role: by a selector for the item or its first role node, or by an attribute's value.
const is = (item, selectors, role) =>
  has(selectors) ? hasAny(item, selectors) || hasAny(roleNodes(item)[0], selectors) : role !== '' && roleOf(item) === role

const isUser = (item) => is(item, rules.user, rules.user_role)

const isAssistant = (item) => is(item, rules.assistant, rules.assistant_role)

const idOf = (item) => attribute(item, rules.turn_id) || messageID(item)

const messageID = (item) => {
  for (const node of [item, ...roleNodes(item)]) {
    const id = attribute(node, rules.message_id)
    if (id) return id
  }
  return ''
}

const userText = (item) => {
  const parts = every(item, rules.user_text)
  return (parts.length > 0 ? parts : roleNodes(item)).map((part) => part.textContent).join('\n')
}

const blocks = new Set(['P', 'DIV', 'PRE', 'LI', 'UL', 'OL', 'TABLE', 'TR', 'BLOCKQUOTE', 'SECTION', 'ARTICLE', 'HR', 'DETAILS', 'SUMMARY',
  'H1', 'H2', 'H3', 'H4', 'H5', 'H6', 'DL', 'DT', 'DD', 'FIGURE', 'TD', 'TH'])

// textOf is what a person reads in a node: newlines and line breaks kept, without the parts that the profile drops.
const textOf = (root, skip, limit) => {
  const out = []
  let length = 0
  let line = true // at the start of a line
  const put = (text) => {
    if (text === '' || length > limit) return
    out.push(text)
    length += text.length
    line = text.endsWith('\n')
  }
  const newLine = () => { if (!line) put('\n') }
  const walk = (node) => {
    if (length > limit) return
    if (node.nodeType === Node.TEXT_NODE) return put(node.data)
    if (node.nodeType !== Node.ELEMENT_NODE) return
    if (node.tagName === 'BR') return put('\n')
    if (node !== root && (hasAny(node, skip) || !shown(node))) return
    const code = rules.code_block && rules.code_text && node.matches(rules.code_block) ? node.querySelectorAll(rules.code_text) : []
    const block = blocks.has(node.tagName)
    if (block) newLine()
    for (const child of code.length > 0 ? code : node.childNodes) walk(child)
    if (block) newLine()
  }
  walk(root)
  return out.join('')
}

// answerAfter is the assistant's material behind item number i, up to the next user message.
const answerAfter = (items, i) => {
  const found = []
  for (let k = i + 1; k < items.length && !isUser(items[k]); k++) found.push(items[k])
  return found
}

// answerTexts are the texts of an answer's role nodes, without reasoning and tools.
const answerTexts = (answer, limit) => {
  const skip = [...(rules.drop ?? []), ...(rules.activity ?? [])]
  const texts = []
  for (const item of answer) {
    for (const node of roleNodes(item)) {
      if (hasAny(node, rules.activity ?? [])) continue
      const text = textOf(node, skip, limit)
      limit -= text.length
      if (text.trim() !== '') texts.push(text)
      if (limit < 0) return {texts, cut: true}
    }
  }
  return {texts, cut: false}
}
