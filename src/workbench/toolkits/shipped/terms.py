"""What people say for the words that services have for things: a Slack channel is a `conversation` to its interface.

For the search for tools alone (`Toolkit.terms`). A line is a fact about an app, for all of its tools that have these
words; the longest that is there counts. After changes run scripts/embed-toolkits.
"""

from __future__ import annotations

from collections.abc import Mapping

_SAID = """
asana
  story = comment
  stories = comments
  followers = people who are told about it
  typeahead = search by the first letters
  user task list = my tasks
  dependencies = what has to be done before
  dependents = what has to wait
  memberships = people
  enum option = choice of a field
bitbucket
  pipeline = build
  pipelines = builds
  branch restriction = protection of a branch
  unapprove = take back the approval
  known host = ssh server
  snippet = piece of code
  default reviewers = people who review pull requests
  diff stat = changed files
box
  collaboration = access of a person to a file or folder, sharing
  collaborations = people with access
  shared link = link that others can open
  web link = bookmark
  classification = confidentiality label
  retention policy = how long files are kept
  file version = older version of a file
  items in folder = what is inside a folder
digital_ocean
  droplet = server
  droplets = servers
  droplet action = restart, reboot, power off, resize or rebuild a server
  domain record = DNS record
  domain records = DNS records
  customer balance = what I owe
  billing history = bills
  snapshot = image of a disk
  vpc = private network
  cdn endpoint = content delivery
  floating ip = public address
figma
  render images = export images
  nodes = frames, layers
  oembed data = preview
  versions = history
  dev resources = links for developers
github
  a reference = a branch or tag
  references = branches and tags
  workflow dispatch event = start a workflow run by hand
  workflow run = build, run of Actions
  workflow runs = builds, runs of Actions
  repository collaborator = person who has access to a repository
  repository collaborators = people who have access to a repository
  file contents = the text of a file
  repository content = a file or folder
  assignees = people in charge
  requested reviewers = people who are asked to review
  request reviewers = ask people to review
  ruleset = protection rules
  the authenticated user = me
  organization members = people of an organization
  repository subscription = watching a repository
  gist = snippet of code
  review for a pull request = approve, request changes or comment on a pull request
  blocks = blocked people
  stargazers = people who starred it
gmail
  messages = emails
  message = email
  threads = conversations of emails
  vacation settings = out of office reply
  send as = sender name, address and signature
  modify = change the labels, mark as read or unread, archive, star
  untrash = restore from the trash
  trash = throw away
  profile = my address and how many messages there are
  delegates = people who may read my mail
  auto forwarding settings = forwarding of mail
  forwarding addresses = where mail is forwarded to
  attachments = files of an email
  history = changes of the mailbox
  imap settings = mail programs
  watch = notifications
google_admin
  orgunits = departments
  mobiledevices = phones of employees
  chromeosdevices = laptops
  members = people of a group
  aliases = further addresses
  tokens = access of apps
  asps = passwords for apps
  insert = create
google_classroom
  courses = classes
  course = class
  course work = assignment, homework
  student submissions = what students handed in, grades
  guardian = parent
  announcements = posts to the class
  topics = sections of a class
google_search_console
  searchanalytics = search queries, clicks and impressions
  sitemaps = list of pages
  index = whether a page is found
googlebigquery
  jobs = queries that run
  query jobs = run SQL
  tabledata = rows of a table
  insert all = add rows
  insert = create
  routines = functions
  iam policy = who has access
googlecalendar
  acl = sharing, who can see the calendar
  access control rule = person who can see the calendar
  freebusy = when people are free
  instances = occurrences of a repeated event
  calendar list = my calendars
  events = meetings, appointments
  event = meeting, appointment
  insert = create
  patch = change
  quick add = add by one sentence
  colors = colours
  settings = preferences
googlechat
  spaces = rooms, group chats
  space = room, group chat
  members = people
  membership = person
  reactions = emoji
  availability = my status
googlecontacts
  people = contacts
  connections = my contacts
  contact = address and phone number of a person
  directory = people of the company
  contact groups = lists of contacts
googledocs
  get documents = read the text
  documents = text documents
googledrive
  permissions = access of people, sharing
  permission = access of a person, sharing
  revisions = older versions
  about = my account and storage
  drives = shared drives
  update files = rename or change files
  get files = details
  replies = answers to comments
  accessproposals = requests for access
googleforms
  responses = what people answered
  response = what one person answered
  forms = surveys
  watches = notifications
googlemeet
  spaces = meetings
  conference records = past meetings
  transcripts = what was said
  entries = what was said
  participants = who was there
  smart notes = notes of a meeting
googlesheets
  values = cells
  append values = add rows at the end
  sheet = tab
  sheets = tabs
  get spreadsheets = tabs of a spreadsheet
  developer metadata = hidden notes for programs
googleslides
  presentations = decks
  presentation = deck
  pages = slides
  page = slide
  thumbnail = picture
googletasks
  tasklists = to-do lists
  task list = to-do list
  tasks = to-dos
  task = to-do
  patch tasks = change or complete a task
  update tasks = change or complete a task
  insert = add
jira
  issue = ticket
  issues = tickets
  transition = move to another status
  transitions = next statuses
  transition issue = move a ticket to another status
  worklog = time spent, hours
  worklogs = time spent, hours
  watcher = person who follows
  version = release
  versions = releases
  changelogs = history of changes
  using jql = by assignee, status, date or project
  edit issue = change the priority, due date, labels, summary or other fields of a ticket
  issue link = relation between two tickets
  resolution = how a ticket was closed
  component = part of a project
notion
  data source = database
  block children = text, paragraphs and lists of a page
  append = add at the end
  query = show the rows, filter and sort
  page properties = fields of an entry, status
  create a page = create a page, add a row or entry to a database
  a block = a paragraph
sendgrid
  suppressions = unsubscribed addresses
  suppression = unsubscribed address
  global suppression = unsubscribed address
  suppression group = topic that people unsubscribe from
  recipients = people on the mailing list
  contacts = people on the mailing list
  contact = person on the mailing list
  single send = newsletter
  single sends = newsletters
  transactional template = template of an email
  email statistics = how many were delivered, opened, clicked and bounced
  teammates = colleagues
  v3 mail send = send email
  subuser = account of a customer
slack
  conversations = channels
  conversation = channel
  conversations kick = remove a person from a channel
  conversations history = messages of a channel
  dnd = do not disturb, pause notifications
  snooze = pause notifications
  profile set = set my status and profile
  profile information = status, name and picture
  pins = pinned messages
  stars = saved items
  purpose = description of a channel
  usergroups = groups of people
  presence = active or away
  chat update = edit a message
  chat delete = delete a message
  thread = replies
  files upload = share a file
spotify
  tracks = songs
  track = song
  items = songs
  item = song
  playback = music
  top artists = most listened artists
  top tracks = most listened songs
  saved tracks = liked songs
  shows = podcasts
  show = podcast
  queue = what plays next
  library = favourites
square
  inventory count = how many are left in stock
  inventory counts = how many are left in stock
  inventory = stock
  catalog = products and prices
  catalog object = product
  team member = employee
  team members = employees
  shift = working hours
  booking = appointment
  loyalty = points of regular customers
  tender = payment
  checkout = payment page
stripe
  payment intent = payment
  payment intents = payments
  charge = payment by card
  promotion code = promo code that customers type in
  coupon = discount
  delete subscription = cancel a subscription
  delete customer subscription = cancel a subscription
  create subscription = sign a customer up to a plan
  create price = set the price of a product
  invoiceitem = line of an invoice
  checkout session = payment page
  dispute = chargeback
  disputes = chargebacks
  payouts = money sent to my bank
  payout = money sent to my bank
  uncollectible = bad debt
  setup intent = saved card
  payment method = card
  payment methods = cards
  issuing = cards that we give out
  treasury = bank account
trello
  actions comments = comment
  id list = move to another list
  closed = archive
  id members = people on it
  members = people
  due = due date
  desc = description
  pos = position
  prefs = settings
  organizations = workspaces, teams
  update boards members = add a person to a board
  id labels = label
  check item = step of a checklist
  id board = move to another board
twilio
  message = text message, SMS
  create message = send a text message, SMS
  create call = call a phone number
  call = phone call
  create incoming phone number = buy a phone number
  incoming phone number = phone number that I own
  available phone number = phone number that can be bought
  outgoing caller id = number that is shown
  usage record = what was used and what it costs
  conference = call with several people
  recording = recorded call
xero
  contacts = customers and suppliers
  contact = customer or supplier
  bills = invoices to pay
  bank transactions = money spent and received
  credit note = refund
  tracking category = department
  items = products
  history = notes
  quotes = offers
  quote = offer
  expense claim = what an employee spent
  accounts = chart of accounts
youtube
  insert videos = upload a video
  videos = films, clips
  insert = add
  subscriptions = channels that I follow
  insert subscriptions = subscribe to a channel
  playlist items = videos of a playlist
  captions = subtitles
  comment threads = comments of a video
  rate = like or dislike
  thumbnails = cover pictures
  live broadcasts = live streams
zoom
  meeting = video call
  meetings = video calls
  registrant = person who signed up
  registrants = people who signed up
  panelist = speaker
  webinar = online event
  cloud recording = recorded meeting
  participants = who was there
  im chat = messages
"""


def _read(said: str) -> dict[str, dict[str, str]]:
    """Toolkits begin a line; their words follow it, indented."""
    found: dict[str, dict[str, str]] = {}
    of: dict[str, str] = {}
    for line in said.strip().splitlines():
        if not line.startswith(" "):
            of = found.setdefault(line.strip(), {})
            continue
        word, _, plain = line.partition(" = ")
        of[word.strip()] = plain.strip()
    return found


TERMS: Mapping[str, Mapping[str, str]] = _read(_SAID)
"""by toolkit"""
